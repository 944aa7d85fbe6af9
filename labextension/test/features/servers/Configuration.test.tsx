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
