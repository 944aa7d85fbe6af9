import { parse, stringify } from '../../../src/api/json';
import type { JsonValue } from '../../../src/api/json';
import { isSecret, MASK, masked } from '../../../src/ui/text/secretValues';

test.each<[string, JsonValue, boolean]>([
  ['api_key', 'sk-1', true],
  ['pin_password', 1234, true],
  ['credentials', { user: 'ada' }, true],
  ['api_key', '', false],
  ['api_key', null, false],
  ['use_token', true, false],
  ['max_tokens', 4096, false],
  ['tokens', ['a'], true],
  ['key', 'name', false]
])('whether %s with %j is a secret', (name, value, expected) => {
  expect(isSecret(name, value)).toBe(expected);
});

test('what is in a value and has the name of a secret is masked, in its order and with all digits', () => {
  const value = parse(
    '{"b": [{"token": "abc", "10": 1.50}], "2": {"api_key": {"a": 1}}, "a": 1}'
  );
  expect(stringify(masked('options', value).value)).toBe(
    `{"b":[{"token":"${MASK}","10":1.50}],"2":{"api_key":"${MASK}"},"a":1}`
  );
  expect(masked('options', value).hidden).toBe('abc{"a":1}'.length);
  expect(masked('password', 'sk-1')).toEqual({ value: MASK, hidden: 4 });
});

test.each([
  ['{"api_key": "sk-\\"1", "a":  1}', `{"api_key": "${MASK}", "a":  1}`, 5],
  ['[{"token":[1,{"a":"]"}]} , 2]', `[{"token":"${MASK}"} , 2]`, 13],
  ['{"\\u0074oken" :1234\n}', `{"\\u0074oken" :"${MASK}"\n}`, 4],
  ['{"a": "\\"token\\": \\"b\\"", "token": ""}', null, 0],
  ['{"max_tokens": 5, "token": null, "secret": false}', null, 0],
  ['{"token": "a"', null, 0],
  ['token: a', null, 0]
])('in the text %s', (text, shown, hidden) => {
  expect(masked('body', text)).toEqual({ value: shown ?? text, hidden });
});

test('a secret that is too deep to be read is masked, too', () => {
  const deep = '['.repeat(50_000) + ']'.repeat(50_000);
  const text = `{"token": ${deep}}`;
  expect(masked('body', text)).toEqual({
    value: `{"token": "${MASK}"}`,
    hidden: 100_000
  });
});

test('a secret at the end of two megabytes is masked', () => {
  const text = JSON.stringify({
    list: Array.from({ length: 500_000 }, () => '1'),
    token: 'a'
  });
  expect(masked('body', text).hidden).toBe(1);
});
