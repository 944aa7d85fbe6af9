import { parse, stringify } from '../../../src/api/json';
import type { IJsonObject } from '../../../src/api/json';
import {
  literal,
  proposedRule
} from '../../../src/features/rules/proposedRule';
import { allowed, approval } from '../../examples';

test('a rule from a request is for its tool and its plain arguments, and names the others', () => {
  const shown = approval({});
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
  shown.call.arguments = { user: 'ada', api_key: 'sk-123' };
  const { rule, anyValue } = proposedRule(shown, 'deny');
  expect(JSON.stringify(rule)).not.toContain('sk-123');
  expect(rule['arguments']).toEqual({ user: 'ada' });
  expect(anyValue).toEqual(['api_key']);
});

test('a rule from a request without arguments has no conditions', () => {
  const shown = approval({});
  shown.call.arguments = {};
  expect(proposedRule(shown).rule).not.toHaveProperty('arguments');
});

test('a literal pattern has no wildcard', () => {
  expect(literal('a?b*c[d')).toBe('a[?]b[*]c[[]d');
});
