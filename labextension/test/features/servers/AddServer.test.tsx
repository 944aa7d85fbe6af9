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
