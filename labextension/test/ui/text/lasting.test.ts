import { chosenAnswer, lastingAnswers } from '../../../src/ui/text/lasting';
import type { IChosenEnd, LastingKind } from '../../../src/ui/text/lasting';
import type { IApproval } from '../../../src/api/protocol';
import { approval, trans } from '../../examples';

const NOW = Date.parse('2026-01-01T00:00:00Z');

function scopes(item: IApproval, kind: LastingKind = 'allow'): string[] {
  return lastingAnswers(item, kind, trans).map(
    answer => answer.terms(NOW).scope
  );
}

test('each answer says all of its scope', () => {
  const answers = lastingAnswers(approval(), 'allow', trans);
  expect(answers.map(answer => [answer.label, answer.terms(NOW)])).toEqual([
    [
      'Allow this exact call of shop.delete_order until its kernel ends',
      { scope: 'call' }
    ],
    [
      'Allow shop.delete_order in this notebook until its kernel ends',
      { scope: 'kernel' }
    ],
    [
      'Allow shop.delete_order in all notebooks for 1 hour',
      { scope: 'user', until: '2026-01-01T01:00:00.000Z' }
    ],
    [
      'Allow shop.delete_order in all notebooks for 10 calls, including this one',
      { scope: 'user', uses: 10 }
    ]
  ]);
});

test('a tool that destroys is named as such in each answer', () => {
  const item = approval();
  item.tool.annotations = { destructiveHint: true };
  for (const { label } of lastingAnswers(item, 'allow', trans)) {
    expect(label).toContain('the destructive shop.delete_order');
  }
});

test('the read-only tools of a server are offered for one of them only', () => {
  const item = approval();
  expect(scopes(item)).not.toContain('server-read-only');
  item.tool.annotations = { readOnlyHint: true };
  expect(scopes(item)).toContain('server-read-only');
  expect(scopes(item, 'reject')).not.toContain('server-read-only');
  item.tool.annotations = { readOnlyHint: true, destructiveHint: true };
  expect(scopes(item)).not.toContain('server-read-only');
});

test('a thread is offered for the calls of one, and what is for a kernel for those of one', () => {
  const item = approval();
  item.call.thread_id = 't1';
  expect(scopes(item)).toEqual(['call', 'kernel', 'thread', 'user', 'user']);
  item.call.kernel_id = null;
  expect(scopes(item)).toEqual(['user', 'user']);
  item.call.kernel_id = 'k1';
  item.call.server = 'notebook';
  item.call.tool = 'run_code';
  const labels = lastingAnswers(item, 'allow', trans).map(({ label }) => label);
  expect(labels).toContain(
    'Allow code of this agent thread until its kernel ends'
  );
});

test('what decides who is asked is never allowed for good', () => {
  const item = approval();
  item.call.server = 'agentbox';
  item.call.tool = 'register_mcp_server';
  expect(scopes(item)).toEqual([]);
  expect(scopes(item, 'reject')).toEqual(['call', 'kernel', 'user']);
});

/** What a chosen end is for, and its terms; or what is wrong with it. */
function chosen(
  end: Partial<IChosenEnd>,
  kind: LastingKind = 'allow'
): [string, object] | string {
  const whole: IChosenEnd = { time: '', unit: 'minutes', calls: '', ...end };
  const answer = chosenAnswer(approval(), kind, whole, trans);
  return typeof answer === 'string'
    ? answer
    : [answer.label, answer.terms(NOW)];
}

test('an answer until a chosen end says all of it', () => {
  const until = '2026-01-01T00:45:00.000Z';
  expect(chosen({ time: '45' })).toEqual([
    'Allow shop.delete_order in all notebooks for 45 minutes',
    { scope: 'user', until }
  ]);
  expect(chosen({ time: ' 45 ', calls: '20' })).toEqual([
    'Allow shop.delete_order in all notebooks for 45 minutes, but at most 20 calls, including this one',
    { scope: 'user', until, uses: 20 }
  ]);
  expect(chosen({ calls: '1000' })).toEqual([
    'Allow shop.delete_order in all notebooks for 1000 calls, including this one',
    { scope: 'user', uses: 1000 }
  ]);
  expect(chosen({ time: '1', unit: 'days' }, 'reject')).toEqual([
    'Reject shop.delete_order in all notebooks for 1 day',
    { scope: 'user', until: '2026-01-02T00:00:00.000Z' }
  ]);
});

test('a number of calls has the form that its language has for it', () => {
  const plural = jest.spyOn(trans, '_n');
  lastingAnswers(approval(), 'allow', trans);
  chosen({ calls: '3' });
  chosen({ calls: '21', time: '5' });
  const numbers = plural.mock.calls.map(([, many, number]) => [many, number]);
  plural.mockRestore();
  const alone = 'Allow %2 in all notebooks for %1 calls, including this one';
  expect(numbers).toEqual([
    [alone, 10],
    [alone, 3],
    ['%1 minutes', 5],
    [expect.stringContaining('at most %1 calls'), 21]
  ]);
});

test.each([
  [{}, 'Enter a time, a number'],
  [{ time: '0' }, 'Enter the time as a whole'],
  [{ time: '-5' }, 'Enter the time as a whole'],
  [{ time: '1.5' }, 'Enter the time as a whole'],
  [{ time: '1e3' }, 'Enter the time as a whole'],
  [{ time: '٣' }, 'Enter the time as a whole'],
  [{ time: '31', unit: 'days' }, 'Enter the time as a whole'],
  [{ time: '721', unit: 'hours' }, 'Enter the time as a whole'],
  [{ time: '5', calls: '1' }, 'Enter a whole number of calls'],
  [{ calls: '1001' }, 'Enter a whole number of calls'],
  [{ calls: '0x10' }, 'Enter a whole number of calls']
] as [Partial<IChosenEnd>, string][])(
  'no end is read from %j',
  (end, problem) => {
    expect(chosen(end)).toContain(problem);
  }
);
