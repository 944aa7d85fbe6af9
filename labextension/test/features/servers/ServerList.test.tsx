import { Signal } from '@lumino/signaling';
import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type { IServer } from '../../../src/api/protocol';
import { ServerList } from '../../../src/features/servers/ServerList';
import type { IServersModel } from '../../../src/internalTokens';

const done = (): Promise<void> => Promise.resolve();

function show(server: Partial<IServer>): IServersModel {
  const servers = [
    {
      name: 'db',
      state: 'running',
      transport: 'stdio',
      error: '',
      protocol_version: '',
      tool_count: null,
      log: [],
      ...server
    } as IServer
  ];
  const model = {
    changed: new Signal<object, void>({}),
    list: { servers, problems: [] },
    restart: jest.fn(done),
    review: jest.fn(done)
  } as unknown as IServersModel;
  render(<ServerList servers={model} />);
  return model;
}

async function press(name: string): Promise<void> {
  await act(async () => {
    fireEvent.click(screen.getByRole('button', { name }));
  });
}

test('a server of the project that is not trusted is reviewed, not restarted', async () => {
  const model = show({ state: 'needs_trust', error: 'is not trusted yet' });
  expect(screen.queryByRole('button', { name: 'Restart db' })).toBeNull();
  await press('Review db');
  expect(model.review).toHaveBeenCalledWith('db');
  expect(model.restart).not.toHaveBeenCalled();
});

test('a server that runs is restarted', async () => {
  const model = show({});
  await press('Restart db');
  expect(model.restart).toHaveBeenCalledWith('db');
  expect(model.review).not.toHaveBeenCalled();
});

test('a review that the server refuses says why', async () => {
  const model = show({ state: 'needs_trust' });
  jest.mocked(model.review).mockRejectedValueOnce(new Error('no such server'));
  await press('Review db');
  expect(document.body.textContent).toContain('no such server');
});
