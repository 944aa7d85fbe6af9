import { parse, stringify } from '../../src/api/json';
import type { IJsonObject } from '../../src/api/json';
import type { IPolicy } from '../../src/api/rules';
import { literal, ruleFrom, RulesModel } from '../../src/model/rules';
import { approval } from '../examples';

test('a rule from a request is for its tool and its plain arguments', () => {
  const shown = approval({});
  shown.call.server = 'a[b]';
  shown.call.tool = 'read_*';
  shown.call.arguments = parse(
    `{"path": "/x/*", "id": 12345678901234567890, "all": true, "ids": [1], "text": "${'x'.repeat(300)}"}`
  ) as IJsonObject;
  expect(stringify(ruleFrom(shown))).toBe(
    stringify({
      effect: 'allow',
      server: 'a[[]b]',
      tool: 'read_[*]',
      arguments: parse(
        '{"path": "/x/[*]", "id": 12345678901234567890, "all": true}'
      )
    })
  );
});

test('a rule from a request without arguments has no conditions', () => {
  const shown = approval({});
  shown.call.arguments = {};
  expect(ruleFrom(shown)).not.toHaveProperty('arguments');
});

test('a literal pattern has no wildcard', () => {
  expect(literal('a?b*c[d')).toBe('a[?]b[*]c[[]d');
});

test('the model tells of what changed, and keeps the last answer if there is none', async () => {
  const policy = { rules: [], revision: 'r1' } as unknown as IPolicy;
  const source = {
    getPolicy: jest.fn(() => Promise.resolve(policy)),
    putPolicy: jest.fn(() => Promise.resolve({ ...policy, revision: 'r2' })),
    tryRule: jest.fn()
  };
  const model = new RulesModel(source);
  const changes: string[] = [];
  model.changed.connect(() => changes.push(model.policy?.revision ?? ''));
  await model.refresh();
  await model.refresh();
  await model.save([], 'r1');
  source.getPolicy.mockRejectedValueOnce(new Error('gone'));
  await model.refresh();
  expect(changes).toEqual(['r1', 'r2']);
});
