import { parse, stringify } from '../../../src/api/json';
import type { IJsonObject } from '../../../src/api/json';
import {
  literal,
  proposedRule as propose
} from '../../../src/features/rules/proposedRule';
import type { IProposedRule } from '../../../src/model/rules';
import { allowed, approval } from '../../examples';

/** The rule made from a call, and the arguments that it has no condition for. */
function proposedRule(...given: Parameters<typeof propose>): {
  rule: IJsonObject;
  anyValue: string[];
} {
  const { rule, names } = propose(...given) as IProposedRule;
  const conditions = (rule['arguments'] ?? {}) as IJsonObject;
  return {
    rule,
    anyValue: names.filter(name => !Object.hasOwn(conditions, name))
  };
}

test('a rule from a request is for its tool and its plain arguments, and names the others', () => {
  const shown = approval({});
  shown.tool.input_schema = {};
  shown.call.server = 'a[b]';
  shown.call.tool = 'read_*';
  const long = 'x'.repeat(1001);
  shown.call.arguments = parse(
    `{"path": "/x/*", "id": 12345678901234567890, "all": true, "ids": [1], "text": "${long}", "o": {}}`
  ) as IJsonObject;
  const { rule, anyValue } = proposedRule(shown);
  expect(stringify(rule)).toBe(
    stringify({
      effect: 'allow',
      server: 'a[[]b]',
      tool: 'read_[*]',
      arguments: parse(
        '{"path": "/x/[*]", "id": 12345678901234567890, "all": true}'
      )
    })
  );
  expect(anyValue).toEqual(['ids', 'text', 'o']);
});

test('a rule from an edited call is for the arguments that ran', () => {
  const shown = allowed();
  shown.call.arguments = { order_id: 7 };
  shown.decision = shown.decision && {
    ...shown.decision,
    arguments: { order_id: 8 }
  };
  expect(proposedRule(shown).rule['arguments']).toEqual({ order_id: 8 });
});

test('a secret is in no rule', () => {
  const shown = approval({});
  shown.tool.input_schema = {};
  shown.call.arguments = {
    user: 'ada',
    api_key: 'sk-123',
    body: '{"password": "sk-123"}'
  };
  const { rule, anyValue } = proposedRule(shown, 'deny');
  expect(JSON.stringify(rule)).not.toContain('sk-123');
  expect(rule['arguments']).toEqual({ user: 'ada' });
  expect(anyValue).toEqual(['api_key', 'body']);
});

test('the arguments that the call did not have are named, too', () => {
  const shown = approval({});
  shown.tool.input_schema = { properties: { branch: {}, force: {} } };
  shown.call.arguments = { branch: 'main' };
  expect(proposedRule(shown).anyValue).toEqual(['force']);
});

test('no name and no value makes a condition vanish', () => {
  const shown = approval({});
  shown.tool.input_schema = {};
  shown.call.arguments = parse(
    '{"__proto__": "only this", "": {"text": "x"}, "note": "a [redacted] b"}'
  ) as IJsonObject;
  const { rule, anyValue } = proposedRule(shown);
  expect(stringify(rule['arguments'])).toBe('{"__proto__":"only this"}');
  expect(anyValue).toEqual(['', 'note']);
});

test('no rule is made from a call whose arguments this page lacks', () => {
  const omitted = { size: 70_000, head: '{"sql": "' };
  const waiting = approval({});
  waiting.call.omitted = omitted as never;
  waiting.call.arguments = {};
  expect(propose(waiting)).toBeNull();
  const edited = allowed();
  edited.decision = edited.decision && {
    ...edited.decision,
    omitted: omitted as never
  };
  expect(propose(edited)).toBeNull();
});

test('a rule from a request without arguments has no conditions', () => {
  const shown = approval({});
  shown.call.arguments = {};
  expect(proposedRule(shown).rule).not.toHaveProperty('arguments');
});

test('a literal pattern has no wildcard', () => {
  expect(literal('a?b*c[d')).toBe('a[?]b[*]c[[]d');
});
