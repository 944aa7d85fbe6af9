import type { IHubReview, IReviewer } from '../../../src/api/protocol';
import { savedLine, saysThatItWaits } from '../../../src/ui/text/savedLine';
import { allowed, approval } from '../../examples';

const done = {
  state: 'succeeded' as const,
  started_at: '2026-01-01T00:01:00.000Z',
  finished_at: null,
  error: ''
};

test('only the text of a request that waits says so', () => {
  const text =
    'shop.buy is waiting for approval. Allow, edit or reject it at http://x/.';
  expect(saysThatItWaits(text)).toBe(true);
  expect(saysThatItWaits('✓ shop.buy(…) — allowed by Ada')).toBe(false);
  expect(saysThatItWaits(undefined)).toBe(false);
});

test('there is no line of what is still open', () => {
  expect(savedLine(approval())).toBeNull();
  expect(savedLine(allowed())).toBeNull();
});

test('the line says what became of it, who decided and when, without arguments', () => {
  const line = savedLine(allowed({ outcome: done }));
  expect(line).toMatch(
    /^✓ shop\.delete_order\(…\) — allowed by ada, 20\d\d-\d\d-\d\d \d\d:\d\d$/
  );
  const failed = allowed({ outcome: { ...done, state: 'failed' } });
  expect(savedLine(failed)).toMatch(/^✗ .*, the tool failed$/);
  const cancelled = { ...done, state: 'cancelled' } as const;
  expect(savedLine(allowed({ outcome: cancelled }))).toMatch(
    /^✗ .*, cancelled while it ran$/
  );
  const review = { status: 'rejected' } as IHubReview;
  const refused = { ...done, state: 'failed', review } as const;
  expect(savedLine(allowed({ outcome: refused }))).toMatch(
    /^✗ .*; did not run$/
  );
  const neverRan = { ...cancelled, started_at: null };
  expect(savedLine(allowed({ outcome: neverRan }))).toMatch(
    /^✗ .*; did not run$/
  );
  expect(savedLine(approval({ status: 'expired' }))).toBe(
    '✗ shop.delete_order(…) — expired: nobody decided in time, did not run'
  );
  expect(savedLine(approval({ status: 'orphaned' }))).toBe(
    '✗ shop.delete_order(…) — the kernel or the server stopped before anybody decided; did not run'
  );
  expect(savedLine(approval({ status: 'cancelled' }))).toBe(
    '✗ shop.delete_order(…) — withdrawn by the code before anybody decided; did not run'
  );
});

test('the line has the arguments that the server says the file may have', () => {
  const { decision } = allowed();
  const edited = allowed({
    outcome: done,
    decision: decision && { ...decision, arguments: { order_id: 8 } },
    saved: { call: 'shop.delete_order(order_id=8)', replaced: 'order_id=7' }
  });
  expect(savedLine(edited)).toMatch(
    /^✓ shop\.delete_order\(order_id=8\) — edited \(the code asked for order_id=7\), allowed by ada, 20/
  );
  expect(savedLine({ ...edited, saved: null })).toMatch(
    /^✓ shop\.delete_order\(…\) — edited, allowed by ada, 20/
  );
});

test.each([
  [{ reviewer_name: 'Ada Lovelace' }, 'Ada Lovelace'],
  [
    { reviewer: 'f08fd2'.padEnd(32, '0'), reviewer_name: 'Anonymous Eupheme' },
    'Anonymous Eupheme'
  ],
  [{ reviewer: 'f08fd2'.padEnd(32, '0') }, 'user f08fd2'],
  [
    { reviewer: 'f08fd2'.padEnd(32, '0'), via: 'api_token' },
    "a program with the server's token"
  ],
  [{ via: 'api_token' }, 'a program with a token of ada'],
  [
    { via: 'api_token', token_note: 'nightly' },
    'a program with a token of ada (“nightly”)'
  ],
  [{ via: 'terminal' }, 'ada in the terminal'],
  [{ reviewer_kind: 'service', via: 'api_token' }, 'the service ada']
] as [Partial<IReviewer>, string][])(
  'it names who answered as the line of the kernel does: %j',
  (who, words) => {
    const { decision } = allowed();
    const line = savedLine(
      allowed({ outcome: done, decision: decision && { ...decision, ...who } })
    );
    expect(line).toContain(` by ${words}, 20`);
  }
);
