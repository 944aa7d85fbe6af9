import { lastingAnswers } from '../../../src/ui/text/lasting';
import type { LastingKind } from '../../../src/ui/text/lasting';
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
      'Allow shop.delete_order in all notebooks for 10 calls, with this one',
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
