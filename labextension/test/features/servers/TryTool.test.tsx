import { Signal } from '@lumino/signaling';
import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { RequestError } from '../../../src/api/errors';
import type { IJsonObject } from '../../../src/api/json';
import type { ICallEnd, IWholeTool } from '../../../src/api/protocol';
import { TryTool } from '../../../src/features/servers/TryTool';
import type { IServersModel } from '../../../src/internalTokens';
import { byPerson } from '../../person';

const TOOL: IWholeTool = {
  name: 'find',
  title: '',
  description: '',
  annotations: {},
  digest: '',
  input_schema: { type: 'object', properties: { text: { type: 'string' } } },
  output_schema: null
};
const WAITS: ICallEnd = { known: true, result: null, error: null };

function show(...ends: ICallEnd[]) {
  const changed = new Signal<object, string | null>({});
  const tracking = { dispose: jest.fn(), isDisposed: false };
  const servers = {
    callTool: jest.fn(() => Promise.resolve('r1')),
    getCallEnd: jest.fn(() => Promise.resolve(ends.shift() ?? WAITS))
  };
  const showRequest = jest.fn();
  render(
    <TryTool
      server="shop"
      tool={TOOL}
      servers={servers as unknown as IServersModel}
      approvals={{ changed, track: () => tracking }}
      showRequest={showRequest}
      onClose={jest.fn()}
    />
  );
  return { changed, servers, showRequest };
}

async function ask(): Promise<void> {
  const button = screen.getByRole('button', { name: 'Ask to call find' });
  await act(async () => {
    byPerson(button, new MouseEvent('click', { bubbles: true }));
  });
}

async function settle(changed: Signal<object, string | null>): Promise<void> {
  await act(async () => {
    changed.emit('r1');
  });
}

test('a call is asked for with what was typed, and its answer is shown', async () => {
  const content: IJsonObject[] = [
    { type: 'text', text: '<b>lamp\u202e</b>' },
    { type: 'x' }
  ];
  const { changed, servers, showRequest } = show(WAITS, {
    ...WAITS,
    result: { content, structured: null, is_error: false }
  });
  fireEvent.change(screen.getByRole('textbox'), { target: { value: 'lamp' } });
  await ask();
  expect(servers.callTool).toHaveBeenCalledWith('shop', 'find', {
    text: 'lamp'
  });
  fireEvent.click(screen.getByRole('button', { name: 'Show the request' }));
  expect(showRequest).toHaveBeenCalledWith('r1');
  await settle(changed);
  const text = screen.getByRole('status').textContent ?? '';
  expect(text).toContain('<b>lamp\\u202e</b>');
  expect(text).toContain('1 block of another kind');
});

test('no script asks for a call', () => {
  const { servers } = show();
  fireEvent.click(screen.getByRole('button', { name: 'Ask to call find' }));
  expect(servers.callTool).not.toHaveBeenCalled();
});

test('a rejection and a lost result are told', async () => {
  const { changed } = show(WAITS, { ...WAITS, error: 'rejected by ada' });
  await ask();
  await settle(changed);
  expect(screen.getByRole('status').textContent).toBe('rejected by ada');
});

test('a result that is not kept is told', async () => {
  show({ ...WAITS, known: false });
  await ask();
  expect(screen.getByRole('status').textContent).toContain('no longer kept');
});

test('arguments that do not fit are told', async () => {
  const { servers } = show();
  servers.callTool.mockRejectedValueOnce(
    new RequestError(422, 'too few', null, null)
  );
  await ask();
  expect(screen.getByRole('alert').textContent).toBe('too few');
  expect(screen.queryByRole('status')).toBeNull();
});

test('what the server objects to stands once, at its field, and goes when the field is corrected', async () => {
  jest.useFakeTimers();
  const { servers } = show();
  servers.callTool.mockRejectedValueOnce(
    new RequestError(422, 'too short', 'text', null)
  );
  screen.getByRole('button', { name: 'Ask to call find' }).focus();
  await ask();
  act(() => {
    jest.runAllTimers();
  });
  expect(screen.getAllByText(/too short/)).toHaveLength(1);
  expect(screen.queryByRole('alert')).toBeNull();
  const field = screen.getByRole('textbox');
  expect(field.getAttribute('aria-invalid')).toBe('true');
  expect(document.activeElement).toBe(field);
  fireEvent.change(field, { target: { value: 'lamp' } });
  expect(screen.queryByText(/too short/)).toBeNull();
  jest.useRealTimers();
});

test('as JSON, the objection stands once below the text', async () => {
  const { servers } = show();
  servers.callTool.mockRejectedValueOnce(
    new RequestError(422, 'too short', 'text', null)
  );
  await ask();
  fireEvent.click(screen.getByRole('button', { name: 'Edit as JSON' }));
  expect(screen.getByRole('alert').textContent).toBe('too short');
  expect(screen.getAllByText(/too short/)).toHaveLength(1);
});
