import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type { IAddition, IOtherServer } from '../../../src/api/protocol';
import { Configuration } from '../../../src/features/servers/Configuration';
import type { IServersModel } from '../../../src/internalTokens';
import { GUARD_TIME } from '../../../src/ui/guarded/guardTime';
import { layOut, setCovered, waitForButtons } from '../../layout';
import { byPerson } from '../../person';

const ADDITION: IAddition = {
  file: '/home/ada/.jupyter/mcp.json',
  revision: 'r1',
  line: 4,
  text: '"shop": { "command": "npx" }',
  starts: 'npx -y \u202eshop',
  notes: ['the variable is not set']
};

function show(
  changes: Partial<IServersModel> = {},
  document: string | null = null
) {
  const servers = {
    list: {
      servers: [],
      problems: [],
      file: { path: ADDITION.file, document }
    },
    previewServer: jest.fn(() => Promise.resolve(ADDITION)),
    addServer: jest.fn(() => Promise.resolve()),
    listOtherServers: jest.fn(() => Promise.resolve([])),
    ...changes
  };
  const openDocument = jest.fn();
  render(
    <Configuration
      servers={servers as unknown as IServersModel}
      openDocument={openDocument}
    />
  );
  return { servers, openDocument };
}

async function press(name: string | RegExp): Promise<void> {
  const button = screen.getByRole('button', { name });
  await act(async () => {
    byPerson(button, new MouseEvent('click', { bubbles: true }));
  });
}

function type(field: string, value: string): void {
  fireEvent.change(screen.getByLabelText(field), { target: { value } });
}

async function preview(): Promise<void> {
  await press('Add server…');
  type('Name', 'shop');
  type('Program', 'npx');
  await press('Preview');
}

beforeEach(() => {
  jest.useFakeTimers();
  layOut();
});

afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

test('a server is added as it was shown, by a button that names what it starts', async () => {
  const { servers } = show();
  await preview();
  const text = document.body.textContent ?? '';
  expect(text).toContain(ADDITION.text);
  expect(text).toContain('from line 4');
  expect(text).toContain('the variable is not set');
  expect(servers.addServer).not.toHaveBeenCalled();
  waitForButtons();
  await press('Add and start: npx -y \\u202eshop');
  expect(servers.addServer).toHaveBeenCalledWith(
    'shop',
    { command: 'npx' },
    'r1'
  );
  expect(screen.getByRole('button', { name: 'Add server…' })).toBeTruthy();
});

test('the second click of a double click on “Preview”, and a held key, add nothing', async () => {
  const { servers } = show();
  await preview();
  await press(/^Add and start/);
  waitForButtons(GUARD_TIME - 1);
  await press(/^Add and start/);
  expect(servers.addServer).not.toHaveBeenCalled();
  waitForButtons(1);
  const add = screen.getByRole('button', { name: /^Add and start/ });
  expect(fireEvent.keyDown(add, { key: 'Enter', repeat: true })).toBe(false);
  expect(fireEvent.keyDown(add, { key: 'Enter' })).toBe(true);
  await press(/^Add and start/);
  expect(servers.addServer).toHaveBeenCalledTimes(1);
});

test('a press just after something lay over the form adds nothing', async () => {
  const { servers } = show();
  await preview();
  waitForButtons();
  setCovered(true);
  await press(/^Add and start/);
  setCovered(false);
  await press(/^Add and start/);
  expect(servers.addServer).not.toHaveBeenCalled();
  expect(document.body.textContent).toContain('That did not count');
  waitForButtons();
  await press(/^Add and start/);
  expect(servers.addServer).toHaveBeenCalledTimes(1);
});

test('no script adds a server', async () => {
  const { servers } = show();
  await preview();
  waitForButtons();
  fireEvent.click(screen.getByRole('button', { name: /^Add and start/ }));
  expect(servers.addServer).not.toHaveBeenCalled();
});

test('what changes after the preview has to be looked at again', async () => {
  show();
  await preview();
  type('Program', 'evil');
  expect(screen.queryByRole('button', { name: /^Add and start/ })).toBeNull();
});

test('a file that changed meanwhile is told, and nothing that was typed is lost', async () => {
  const addServer = jest.fn(() => Promise.reject(new Error('has changed')));
  show({ addServer });
  await preview();
  waitForButtons();
  await press(/^Add and start/);
  expect(screen.getByRole('alert').textContent).toBe('has changed');
  expect(screen.getByLabelText<HTMLInputElement>('Program').value).toBe('npx');
  expect(screen.getByRole('button', { name: 'Preview' })).toBeTruthy();
});

test('a server of another program is looked at, chosen and shown before it is added', async () => {
  const other: IOtherServer = {
    program: 'Cursor',
    file: '/home/ada/.cursor/mcp.json',
    name: 'shop',
    configuration: { command: 'npx', args: ['a'] },
    notes: ['set the variable'],
    refused: '',
    is_known: false
  };
  const found = [
    other,
    { ...other, name: 'bad', configuration: null, refused: 'no such thing' },
    { ...other, name: 'old', is_known: true }
  ];
  const { servers } = show({
    listOtherServers: jest.fn(() => Promise.resolve(found))
  });
  await press('Import servers of other programs');
  expect(document.body.textContent).toContain('no such thing');
  const choices = screen.getAllByRole('button', { name: /^Choose/ });
  expect(choices).toHaveLength(1);
  await press('Choose shop');
  await press('Preview');
  expect(servers.previewServer).toHaveBeenCalledWith(
    'shop',
    other.configuration
  );
});

/** Press a button as a key does: it has the focus. */
async function pressByKey(name: string): Promise<void> {
  screen.getByRole('button', { name }).focus();
  await press(name);
}

test('who presses “Preview” by a key goes on from what it shows', async () => {
  const { servers } = show();
  await pressByKey('Add server…');
  expect(document.activeElement).toBe(screen.getByLabelText('Name'));
  type('Name', 'shop');
  type('Program', 'npx');
  let answer = (_: IAddition): void => undefined;
  jest.mocked(servers.previewServer).mockReturnValueOnce(
    new Promise(resolve => {
      answer = resolve;
    })
  );
  await pressByKey('Preview');
  const button = screen.getByRole('button', { name: 'Preview' });
  expect(document.activeElement).toBe(button);
  expect(button).toHaveProperty('disabled', false);
  await press('Preview');
  expect(servers.previewServer).toHaveBeenCalledTimes(1);
  await act(async () => {
    answer(ADDITION);
  });
  expect(document.activeElement?.textContent).toContain(ADDITION.text);
  expect(document.activeElement?.querySelector('button')).toBeNull();
});

test('who went elsewhere before the preview came is left there', async () => {
  show();
  await press('Add server…');
  const name = screen.getByLabelText('Name');
  expect(document.activeElement).toBe(name);
  type('Program', 'npx');
  await press('Preview');
  expect(document.activeElement).toBe(name);
});

test('a form that is closed gives the focus back to the button that opened it', async () => {
  show();
  await pressByKey('Add server…');
  await pressByKey('Cancel');
  expect(document.activeElement?.textContent).toBe('Add server…');
  await pressByKey('Import servers of other programs');
  await pressByKey('Close');
  expect(document.activeElement?.textContent).toBe('Import…');
});

test('an addition that fails leaves the focus in the form', async () => {
  const addServer = jest.fn(() => Promise.reject(new Error('has changed')));
  show({ addServer });
  await preview();
  waitForButtons();
  await pressByKey('Add and start: npx -y \\u202eshop');
  const form = screen.getByRole('group', { name: 'Add an MCP server' });
  expect(form.contains(document.activeElement)).toBe(true);
});

test('the file opens in the editor, or says where it is', async () => {
  const { openDocument } = show({}, 'mcp.json');
  await press('Open mcp.json');
  expect(openDocument).toHaveBeenCalledWith('mcp.json');
});

test('a file that no page can open says where it is', () => {
  show();
  expect(screen.queryByRole('button', { name: 'Open mcp.json' })).toBeNull();
  expect(document.body.textContent).toContain(ADDITION.file);
});
