import { Signal } from '@lumino/signaling';
import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type { IThread } from '../../../src/api/threads';
import { ThreadList } from '../../../src/features/threads/ThreadList';
import type { IThreadDialogs } from '../../../src/features/threads/threadDialogs';
import type { IThreadsModel } from '../../../src/internalTokens';
import { thread } from '../../threads';

const done = (): Promise<void> => Promise.resolve();

function show(
  threads: IThread[],
  fields: Partial<IThreadsModel> = {}
): IThreadsModel {
  const model = {
    changed: new Signal<object, void>({}),
    threads,
    hasMore: false,
    showsArchived: false,
    steer: jest.fn(done),
    stop: jest.fn(done),
    fork: jest.fn(done),
    update: jest.fn(done),
    ...fields
  } as unknown as IThreadsModel;
  const dialogs = { delete: jest.fn(done) } as unknown as IThreadDialogs;
  render(<ThreadList threads={model} dialogs={dialogs} />);
  return model;
}

async function press(name: string): Promise<void> {
  await act(async () => {
    fireEvent.click(screen.getByRole('button', { name }));
  });
}

test('who has no thread is told how to begin', () => {
  show([]);
  expect(document.body.textContent).toContain('%%agent');
});

test.each([
  ['idle', 'idle'],
  ['working', 'working'],
  ['waiting', 'waits for you'],
  ['failed', 'failed']
] as const)('a thread that is %s says so', (state, words) => {
  show([thread('a', { state })]);
  const row = screen.getByRole('listitem');
  expect(row.textContent).toContain(words);
  expect(row.textContent).toContain('orders.ipynb · 1 step · 1,234 tokens');
  expect(row.textContent).toContain('“Which sold best?”');
});

test('an agent that works is stopped, and told something; an idle one is not', async () => {
  const model = show([thread('a', { state: 'working', turn_id: 't1' })]);
  fireEvent.change(screen.getByRole('textbox'), {
    target: { value: ' only October ' }
  });
  await press('Send');
  expect(model.steer).toHaveBeenCalledWith('t1', 'only October');
  expect(screen.getByRole<HTMLInputElement>('textbox').value).toBe('');
  expect(screen.getByRole('status').textContent).toBe('Sent: “only October”');
  await press('Stop');
  expect(model.stop).toHaveBeenCalledWith('t1');
});

test('why something was not done is said at its thread, and what was typed stays', async () => {
  show([thread('a', { turn_id: 't1' })], {
    steer: () => Promise.reject(new Error('the turn has ended'))
  });
  fireEvent.change(screen.getByRole('textbox'), { target: { value: 'a' } });
  await press('Send');
  expect(screen.getByRole('alert').textContent).toBe('the turn has ended');
  expect(screen.getByRole<HTMLInputElement>('textbox').value).toBe('a');
});

test('archived threads stand by themselves', async () => {
  const model = show([thread('a'), thread('b', { is_archived: true })], {
    showsArchived: true
  });
  expect(screen.getByRole('heading', { name: 'Archived' })).not.toBeNull();
  await press('Unarchive');
  expect(model.update).toHaveBeenCalledWith('b', { is_archived: false });
});

test('names and prompts are text', () => {
  show([thread('a', { name: '<b>\u202e', last_prompt: '<img src=x>' })]);
  const row = screen.getByRole('listitem');
  expect(row.querySelector('b, img')).toBeNull();
  expect(row.textContent).toContain('<b>\\u202e');
});
