import { Signal } from '@lumino/signaling';
import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type { IApproval, IQuestion } from '../../src/api/protocol';
import { StatusButton } from '../../src/shell/status';
import type { IApprovalModel } from '../../src/internalTokens';
import type { IStatusOptions } from '../../src/shell/status';
import {
  approval,
  approvalAtHub,
  hubList,
  hubRequest,
  question,
  trans
} from '../examples';

let changed: Signal<never, void>;
let asked: IQuestion[];
let opened: string[];
let pending: IApproval[];
let atHub: IApproval[];
let connection: IApprovalModel['connection'];

beforeEach(() => {
  connection = 'connected';
  changed = new Signal<never, void>({} as never);
  asked = [];
  opened = [];
  pending = [];
  atHub = [];
});

function show(hub = hubList([])): void {
  const options = {
    model: {
      changed: new Signal<never, string | null>({} as never),
      get connection() {
        return connection;
      },
      get pending() {
        return pending;
      },
      get atHub() {
        return atHub;
      }
    },
    hub: { changed: new Signal<never, void>({} as never), list: hub },
    questions: {
      changed,
      get questions() {
        return asked;
      }
    },
    panel: {
      focusTogether: (id: string) => opened.push(id),
      open: () => opened.push('panel')
    },
    trans
  } as unknown as IStatusOptions;
  render(<StatusButton {...options} />);
}

/** What the item shows, is called, and says to a pointer that rests on it. */
function said(): [string | null, string | null, string | null] {
  const button = screen.getByRole('button');
  return [
    button.textContent,
    button.getAttribute('aria-label'),
    button.getAttribute('title')
  ];
}

test('a click goes to the request that has waited longest, or to the empty panel', () => {
  show();
  fireEvent.click(screen.getByRole('button'));
  pending = [approval({ id: 'oldest' }), approval({ id: 'newer' })];
  fireEvent.click(screen.getByRole('button'));
  expect(opened).toEqual(['panel', 'oldest']);
});

test.each(['connecting', 'unreachable', 'forbidden'] as const)(
  'no count is claimed while this page is not connected: %s',
  now => {
    connection = now;
    show();
    const [, name, title] = said();
    expect(name).toContain('is not known');
    expect(title).toContain('is not known');
    expect(title).not.toContain('0 requests');
  }
);

test('questions of servers count, too, and are not called requests', () => {
  show();
  expect(said()).toEqual([
    '',
    '0 requests awaiting approval',
    '0 requests awaiting approval. Show the panel.'
  ]);
  asked = [question()];
  act(() => changed.emit());
  expect(said()).toEqual([
    '1',
    '1 question from a server',
    '1 question from a server. Show the panel.'
  ]);
});

test('requests and questions are told apart, and summed', () => {
  pending = [approval({ id: 'a1' }), approval({ id: 'a2' })];
  asked = [question({ id: 'q1' }), question({ id: 'q2' })];
  show(hubList([hubRequest()]));
  expect(said()).toEqual([
    '5',
    '3 requests awaiting approval, 2 questions from servers',
    '3 requests awaiting approval, 2 questions from servers. Show the panel.'
  ]);
});

test('a page without questions counts requests alone', () => {
  const options = {
    model: {
      changed: new Signal<never, string | null>({} as never),
      connection: 'connected',
      pending: [approval()],
      atHub: []
    },
    hub: { changed: new Signal<never, void>({} as never), list: hubList([]) },
    questions: null,
    panel: {},
    trans
  } as unknown as IStatusOptions;
  render(<StatusButton {...options} />);
  expect(said()[1]).toBe('1 request awaiting approval');
});

test('calls that wait at the Hub for others are counted by themselves', () => {
  atHub = [approvalAtHub({ id: 'a1' }), approvalAtHub({ id: 'a2' })];
  show();
  expect(said().slice(0, 2)).toEqual([
    '2 at the Hub',
    '0 requests awaiting approval, 2 calls waiting at the Hub for approval'
  ]);
  expect(screen.getByRole('button').className).toBe('');
});

test('a call that waits at the Hub for its own user is counted once', () => {
  atHub = [approvalAtHub({ id: 'a1' }, [])];
  show(hubList([hubRequest()]));
  expect(said().slice(0, 2)).toEqual(['1', '1 request awaiting approval']);
});
