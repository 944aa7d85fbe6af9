import { summarize } from '../../../src/ui/text/summary';
import { explain } from '../../../src/ui/card/useSending';
import { RequestError } from '../../../src/api/errors';
import { allowed, approval, trans } from '../../examples';
import type {
  IApproval,
  IHubReview,
  IReviewer,
  OutcomeState
} from '../../../src/api/protocol';

const nameOf = ({ reviewer }: IReviewer): string => reviewer;

function textOf(item: IApproval): string {
  return summarize(item, nameOf, trans).text;
}

function withOutcome(state: OutcomeState, error = ''): IApproval {
  return allowed({
    outcome: {
      state,
      error,
      started_at: '2026-01-01T00:01:00Z',
      finished_at: state === 'running' ? null : '2026-01-01T00:01:02.5Z'
    }
  });
}

test('expired is not rejected', () => {
  expect(textOf(approval({ status: 'expired' }))).toContain('Expired');
  expect(textOf(approval({ status: 'rejected' }))).toContain('Rejected');
});

test('of a change it says who made it, as nobody allowed it', () => {
  const found = withOutcome('succeeded');
  const call = { ...found.call, server: 'agentbox', tool: 'change_rules' };
  expect(textOf({ ...found, call })).toBe('Done by ada.');
});

test('says who allowed it and what became of it', () => {
  expect(textOf(withOutcome('running'))).toBe('Allowed by ada. Running…');
  expect(textOf(withOutcome('succeeded'))).toBe(
    'Allowed by ada. Done in 2.5 s.'
  );
  const code = withOutcome('succeeded');
  const call = { ...code.call, server: 'notebook', tool: 'run_code' };
  expect(textOf({ ...code, call })).toBe(
    'Allowed by ada. Done 2.5 s after it started.'
  );
  expect(textOf(withOutcome('failed', 'no\norder'))).toBe(
    'Allowed by ada. It failed: no order'
  );
});

const REVIEW: IHubReview = {
  status: 'pending',
  groups: ['stewards'],
  count: 2,
  approved_by: ['bob'],
  expires_at: '2026-01-01T01:00:00Z',
  rejected_by: null,
  reason: '',
  url: null
};

function reviewed(
  state: OutcomeState,
  review: Partial<IHubReview>,
  error = ''
): string {
  const item = withOutcome(state, error);
  return textOf({
    ...item,
    outcome: item.outcome && {
      ...item.outcome,
      review: { ...REVIEW, ...review }
    }
  });
}

test('says that a rule has the Hub asked about a tool of the user', () => {
  const item = withOutcome('running');
  const evaluation = {
    effect: 'allow' as const,
    rule: 'site: ask git.push',
    asks_group: 'g'
  };
  expect(textOf({ ...item, evaluation, decision: null })).toBe(
    'The Hub is asked because of the rule “site: ask git.push”. Running…'
  );
});

test('says that others are asked at the Hub, and then who approved', () => {
  expect(reviewed('running', {})).toBe(
    'Allowed by ada. Waiting for approval at the Hub…'
  );
  const both = { status: 'approved', approved_by: ['bob', 'cleo'] } as const;
  expect(
    reviewed('running', { ...both, approved_by: [...both.approved_by] })
  ).toBe('Allowed by ada. Approved at the Hub by bob and cleo. Running…');
  expect(
    reviewed('failed', { ...both, approved_by: [...both.approved_by] }, 'oh')
  ).toBe('Allowed by ada. Approved at the Hub by bob and cleo. It failed: oh');
});

test('what was rejected at the Hub did not fail, and says who rejected it', () => {
  const rejected = { status: 'rejected', rejected_by: 'c\u202e' } as const;
  expect(reviewed('failed', { ...rejected, reason: 'too\nbroad' }, 'no')).toBe(
    'Allowed by ada. Rejected at the Hub by c\u202e: too broad'
  );
  expect(reviewed('failed', { ...rejected, rejected_by: null }, 'no')).toBe(
    'Allowed by ada. Rejected at the Hub by a rule. The tool did not run.'
  );
  expect(reviewed('failed', { status: 'expired' }, 'no')).toBe(
    'Allowed by ada. Too few people answered at the Hub in time. The tool did not run.'
  );
  expect(reviewed('failed', {}, 'cut off')).toBe(
    'Allowed by ada. It failed: cut off'
  );
  expect(reviewed('cancelled', {})).toBe(
    'Allowed by ada. Cancelled while it was waiting for approval at the Hub.'
  );
  expect(reviewed('failed', { status: 'cancelled' }, 'no')).toContain(
    'Withdrawn at the Hub.'
  );
});

test('of a call that was allowed too late it does not say that it ran', () => {
  const item = withOutcome('cancelled');
  item.outcome = item.outcome && { ...item.outcome, started_at: null };
  expect(textOf(item)).toBe(
    'Allowed by ada. It did not run: the code no longer waited for it.'
  );
});

test('says what the person wrote who allowed it', () => {
  const item = withOutcome('running');
  item.decision = item.decision && {
    ...item.decision,
    reason: 'mind\u202e it'
  };
  expect(textOf(item)).toBe('Allowed by ada (“mind\\u202e it”). Running…');
});

test('of a rule that was written while the call waited it says who wrote it', () => {
  const item = withOutcome('running');
  const rule = { rule: 'user: allow shop.*', file: '/rules.json', line: 3 };
  item.decision = item.decision && { ...item.decision, rule };
  expect(textOf(item)).toBe(
    'Allowed by the rule “user: allow shop.*” that ada wrote. Running…'
  );
  expect(summarize(item, () => 'you', trans).text).toBe(
    'Allowed by the rule “user: allow shop.*” that you wrote. Running…'
  );
});

test('hidden characters in an error are shown', () => {
  expect(textOf(withOutcome('failed', 'a\u202eb'))).toContain('\\u202e');
});

test('a page without a login is told to log in, whether it ended or there was none', () => {
  const error = new RequestError(403, '', null, null, 'needs_person');
  expect(explain(error, nameOf, trans)).toContain(
    'Your login has ended, or this page was opened with a token. Log in again in another tab'
  );
});

test('who may use the server only is told that others decide', () => {
  const error = new RequestError(403, '', null, null, 'not_a_decider');
  expect(explain(error, nameOf, trans)).toContain('only its owner');
});

test('who lacks a right is told which, and that it is not their login', () => {
  const why = 'this requires the right `custom:agentbox:manage`.';
  const error = new RequestError(403, why, null, null, 'not_authorized');
  expect(explain(error, nameOf, trans)).toBe(
    `You do not have the right to give this answer here: ${why} The request still waits.`
  );
});

test('a conflict names the winner', () => {
  const error = new RequestError(409, '', null, allowed());
  expect(explain(error, nameOf, trans)).toBe(
    'Already decided by ada. Your answer was discarded.'
  );
});

test('an answer that reached the server is not said to have been lost', () => {
  const failed = new RequestError(500, 'disk full', null, null);
  expect(explain(failed, nameOf, trans)).toContain('an error (disk full)');
  const gone = new RequestError(404, 'none', null, null);
  expect(explain(gone, nameOf, trans)).toContain('no longer on the server');
  expect(explain(new TypeError('offline'), nameOf, trans)).toContain(
    'did not reply (offline)'
  );
});

test('a time in which people at the Hub were asked is not called the work of a tool', () => {
  const both = { status: 'approved', approved_by: ['bob', 'cleo'] } as const;
  expect(
    reviewed('succeeded', { ...both, approved_by: [...both.approved_by] })
  ).toContain('Done in 2.5 s, with the wait for approval at the Hub.');
  expect(
    reviewed('succeeded', { status: 'approved', approved_by: [] })
  ).toMatch(/Done in 2\.5 s\.$/);
});
