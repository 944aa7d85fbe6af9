import type { IJsonObject } from '../../../src/api/json';
import type { IApproval } from '../../../src/api/protocol';
import { describeRisk, riskOf } from '../../../src/ui/text/risk';
import type { Risk } from '../../../src/ui/text/risk';
import { approval, trans } from '../../examples';

test.each<[IJsonObject, Risk]>([
  [{}, 'unsaid'],
  [{ readOnlyHint: false }, 'unsaid'],
  [{ readOnlyHint: 'true' }, 'unsaid'],
  [{ destructiveHint: 'false' }, 'unsaid'],
  [{ readOnlyHint: true }, 'readonly'],
  [{ readOnlyHint: true, destructiveHint: false }, 'readonly'],
  [{ destructiveHint: false }, 'changes'],
  [{ readOnlyHint: false, destructiveHint: false }, 'changes'],
  [{ readOnlyHint: false, destructiveHint: true }, 'destructive'],
  [{ destructiveHint: true }, 'destructive'],
  [{ readOnlyHint: true, destructiveHint: true }, 'destructive']
])('of %j the risk is %s', (annotations, risk) => {
  expect(riskOf(annotations)).toBe(risk);
});

function calls(server: string, tool: string): IApproval {
  const item = approval();
  item.call = { ...item.call, server, tool };
  item.tool.annotations = { readOnlyHint: true };
  return item;
}

test('the tools of this package have words of their own, whatever their annotations say', () => {
  const texts = (
    [
      ['notebook', 'run_code'],
      ['notebook', 'set_approval_mode'],
      ['agentbox', 'register_mcp_server'],
      ['shell', 'shell']
    ] as const
  ).map(([server, tool]) => describeRisk(calls(server, tool), trans));
  expect(texts.map(({ text }) => text)).toEqual([
    'runs code',
    'lets an agent ask less',
    'adds a server',
    'runs code'
  ]);
  expect(texts.every(({ risk }) => risk === 'unsaid')).toBe(true);
  expect(texts.some(({ isClaim }) => isClaim)).toBe(false);
});

test('what a server says is its claim, and what it does not say is none', () => {
  expect(describeRisk(calls('shop', 'list'), trans)).toEqual({
    risk: 'readonly',
    text: 'read-only',
    isClaim: true
  });
  expect(describeRisk(approval(), trans)).toEqual({
    risk: 'unsaid',
    text: 'Server does not say what it changes',
    isClaim: false
  });
});
