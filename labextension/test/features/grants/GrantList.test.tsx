import { Signal } from '@lumino/signaling';
import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type { IGrant } from '../../../src/api/protocol';
import { GrantList } from '../../../src/features/grants/GrantList';
import type { IGrantsModel } from '../../../src/internalTokens';
import { layOut, setCovered, waitForButtons } from '../../layout';
import { byPerson } from '../../person';

beforeEach(() => {
  jest.useFakeTimers();
  layOut();
});

afterEach(() => {
  jest.useRealTimers();
});

function grant(id: string, tool: string): IGrant {
  return {
    id,
    effect: 'allow',
    scope: 'user',
    server: 'shop',
    tool,
    digest: null,
    kernel_id: null,
    thread_id: null,
    notebook_path: null,
    granted_at: '2026-11-25T01:00:00Z',
    reviewer: 'ada',
    reviewer_kind: 'user',
    reviewer_name: null,
    via: 'browser',
    until: null,
    uses: null,
    used: 0,
    void: null
  } as unknown as IGrant;
}

async function click(button: HTMLElement): Promise<void> {
  await act(async () => {
    byPerson(button, new MouseEvent('click', { bubbles: true }));
  });
}

test('a lasting answer is taken back by a button that was there, and is not covered', async () => {
  const model = {
    changed: new Signal<object, void>({}),
    grants: [grant('g1', 'restock')],
    revoke: jest.fn(() => Promise.resolve())
  };
  render(<GrantList grants={model as unknown as IGrantsModel} />);
  const button = screen.getByRole('button', { name: /^Revoke/ });
  await click(button); // it has just come, maybe into the place of another
  waitForButtons();
  setCovered(true);
  await click(button);
  setCovered(false);
  waitForButtons();
  fireEvent.click(button); // a script's
  expect(model.revoke).not.toHaveBeenCalled();
  await click(button);
  expect(model.revoke).toHaveBeenCalledTimes(1);
});
