import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { AddServer } from '../../../src/features/servers/AddServer';
import { EMPTY } from '../../../src/features/servers/newServer';
import type { INewServer } from '../../../src/features/servers/newServer';
import { byPerson } from '../../person';

function show(start: INewServer) {
  const servers = { previewServer: jest.fn(), addServer: jest.fn() };
  render(<AddServer start={start} servers={servers} onClose={jest.fn()} />);
  return servers;
}

async function preview(): Promise<void> {
  const button = screen.getByRole('button', { name: 'Preview' });
  await act(async () => {
    byPerson(button, new MouseEvent('click', { bubbles: true }));
  });
}

test('a server without a name is not asked about', async () => {
  const servers = show({ ...EMPTY, name: ' ', command: 'x' });
  await preview();
  expect(screen.getByRole('alert').textContent).toBe(
    'The server needs a name.'
  );
  expect(servers.previewServer).not.toHaveBeenCalled();
});

test.each(['{', '[]', ''])(
  'an entry of %j is said to be no JSON object',
  async json => {
    const servers = show({ ...EMPTY, name: 'shop', kind: 'json', json });
    await preview();
    expect(screen.getByRole('alert').textContent).toBe(
      'The entry is not a JSON object.'
    );
    expect(servers.previewServer).not.toHaveBeenCalled();
  }
);

test('a line that cannot be read is named', async () => {
  show({ ...EMPTY, name: 'shop', command: 'x' });
  fireEvent.change(screen.getByLabelText(/^Names of environment variables/), {
    target: { value: 'TOKEN=secret' }
  });
  await preview();
  expect(screen.getByRole('alert').textContent).toBe(
    'This cannot be read: TOKEN=secret'
  );
});

const ADDITION = {
  file: '/mcp.json',
  line: 1,
  text: '',
  notes: [],
  starts: 'x'
};

function paste(field: HTMLElement, value: unknown): void {
  const text = JSON.stringify(value);
  fireEvent.paste(field, { clipboardData: { getData: () => text } });
}

test('a server that is pasted with its name fills the form', async () => {
  const servers = show({ ...EMPTY });
  servers.previewServer.mockResolvedValue(ADDITION);
  const entry = { url: 'https://x.example/mcp' };
  const program = screen.getByLabelText('Program');
  program.focus();
  paste(program, { mcpServers: { shop: entry } });
  const name = screen.getByLabelText<HTMLInputElement>('Name');
  expect(name.value).toBe('shop');
  expect(document.activeElement).toBe(name);
  expect(screen.getByLabelText<HTMLInputElement>('Address').value).toBe(
    entry.url
  );
  await preview();
  expect(servers.previewServer.mock.calls).toEqual([['shop', entry]]);
});

test('several servers change nothing, and it is said what to do', () => {
  show({ ...EMPTY, name: 'mine' });
  const name = screen.getByLabelText<HTMLInputElement>('Name');
  paste(name, { mcpServers: { a: { command: 'x' }, b: { command: 'y' } } });
  expect(screen.getByRole('alert').textContent).toContain('2 servers: a, b.');
  expect(name.value).toBe('mine');
});

test.each([
  ['', 'shop'],
  ['mine', 'mine']
])('a block in the entry is that of its server: %j', async (name, asked) => {
  const entry = { command: 'x', cwd: '/tmp' };
  const json = JSON.stringify({ mcpServers: { shop: entry } });
  const servers = show({ ...EMPTY, name, kind: 'json', json });
  servers.previewServer.mockResolvedValue(ADDITION);
  await preview();
  expect(servers.previewServer.mock.calls).toEqual([[asked, entry]]);
});
