import { act, renderHook } from '@testing-library/react';

import { RequestError } from '../../../src/api/errors';
import type { IApproval, IReviewer } from '../../../src/api/protocol';
import type { PersonalAnswer } from '../../../src/internalTokens';
import {
  explain,
  interruption,
  useSending
} from '../../../src/ui/card/useSending';
import type { ISending } from '../../../src/ui/card/useSending';
import { allowed, approval, trans } from '../../examples';

const ALLOW: PersonalAnswer = { decision: 'allow_once' };
const taken = new RequestError(409, 'decided', null, allowed());

/** A card's sending, for a server that answers each decision with the next of these errors. */
function sending(...errors: Error[]): {
  current: ISending;
  show: (item: IApproval) => void;
  send: (answer: PersonalAnswer) => Promise<void>;
} {
  const { result, rerender } = renderHook(
    (item: IApproval) =>
      useSending(
        item,
        () => Promise.reject(errors.shift()),
        () => item
      ),
    { initialProps: approval() }
  );
  return {
    get current() {
      return result.current;
    },
    show: rerender,
    send: async answer => {
      await act(async () => {
        result.current.send(answer);
        await Promise.resolve();
      });
    }
  };
}

test('an answer that was taken though its reply was lost is no conflict when it is sent again', async () => {
  const here = sending(new TypeError('offline'), taken);
  await here.send(ALLOW);
  expect(here.current.failure).toContain('did not reply (offline)');
  await here.send(ALLOW);
  expect(here.current.failure).toBeNull();
});

test('another answer than the one that was taken is a conflict', async () => {
  const here = sending(new TypeError('offline'), taken);
  await here.send({ decision: 'reject_once', reason: '' });
  await here.send({ decision: 'reject_once', reason: '' });
  expect(here.current.failure).toContain('decided');
});

test('what is not known is not said of a request that is over', async () => {
  const here = sending(new TypeError('offline'));
  await here.send(ALLOW);
  here.show(allowed());
  expect(here.current.failure).toBeNull();
});

test.each([
  [403, 'not_a_decider', 'still waits'],
  [403, 'not_authorized', 'still waits'],
  [403, 'needs_person', 'Log in'],
  [403, null, 'try again'],
  [409, null, 'review it again']
])(
  'what to do with a request that waits is not said of one that is over: %s %s',
  async (status, reason, words) => {
    const here = sending(new RequestError(status, '', null, null, reason));
    await here.send(ALLOW);
    expect(here.current.failure).toContain(words);
    here.show(allowed());
    expect(here.current.failure).toBeNull();
  }
);

test('that an answer came too late stays on the card of a request that is over', async () => {
  const here = sending(taken);
  await here.send({ decision: 'reject_once', reason: '' });
  here.show(allowed());
  expect(here.current.failure).toContain('Your answer was discarded');
});

test('that a request ended while a form was open stays on its card', () => {
  const here = sending();
  here.show(approval({ status: 'expired' }));
  act(() => {
    here.current.interrupt('');
  });
  expect(here.current.failure).toContain('expired while you were answering');
});

const nameOf = ({ reviewer }: IReviewer): string => reviewer;

test.each<[IApproval['status'], string | null]>([
  ['pending', null],
  ['expired', 'expired'],
  ['cancelled', 'The cell was interrupted, or its code withdrew'],
  ['orphaned', 'kernel'],
  ['approved', 'decided by a rule while']
])('a form that closes by itself says why: %s', (status, word) => {
  const text = interruption(approval({ status }), nameOf, trans);
  expect(text === null ? null : word && text.includes(word)).toBe(
    word === null ? null : true
  );
});

test('a form that closes after an answer in another window names who gave it', () => {
  expect(interruption(allowed(), nameOf, trans)).toBe(
    'Already decided by ada while this form was open.'
  );
});

test('who is refused is told to log in again, and that nothing is lost', () => {
  const refused = new RequestError(403, 'Forbidden', null, null);
  const text = explain(refused, ({ reviewer }) => reviewer, trans);
  expect(text).toContain('log in again');
  expect(text).toContain('kept');
});
