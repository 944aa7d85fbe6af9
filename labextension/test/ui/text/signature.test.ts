import { parse } from '../../../src/api/json';
import type { IJsonObject } from '../../../src/api/json';
import { isSecretName } from '../../../src/ui/text/secretNames';
import { signature } from '../../../src/ui/text/signature';

function line(json: string, tool = 'restock'): string {
  return signature(tool, parse(json) as IJsonObject).text;
}

test('a call is one line, as Python writes it', () => {
  expect(line('{"product_id": 3, "quantity": 25}')).toBe(
    'restock(product_id=3, quantity=25)'
  );
  expect(line('{"note": "a \\"b\\"", "urgent": true, "until": null}')).toBe(
    'restock(note="a \\"b\\"", urgent=True, until=None)'
  );
  expect(line('{}')).toBe('restock()');
  expect(line('{"lines": [{"id": 1}, 2.50, false]}')).toBe(
    'restock(lines=[{"id": 1}, 2.50, False])'
  );
});

test('every digit of a number is there', () => {
  expect(line('{"id": 12345678901234567890}')).toBe(
    'restock(id=12345678901234567890)'
  );
});

test('a long text is shortened, outside of its quotes', () => {
  const { text, isWhole } = signature('find', { text: 'x'.repeat(100) });
  expect(text).toBe(`find(text="${'x'.repeat(40)}"…)`);
  expect(isWhole).toBe(false);
});

test('a text that ends in an ellipsis is whole', () => {
  expect(signature('find', { text: 'and so on…' })).toEqual({
    text: 'find(text="and so on…")',
    isWhole: true
  });
});

test('many arguments are cut, and the line says so', () => {
  const values = Object.fromEntries(
    Array.from({ length: 30 }, (_, index) => [`argument_${index}`, index])
  );
  const { text, isWhole } = signature('f', values);
  expect(text.length).toBeLessThan(140);
  expect(text).toMatch(/, …\)$/);
  expect(isWhole).toBe(false);
});

test('a nested value is shortened', () => {
  const rows = Array.from({ length: 1000 }, (_, id) => ({ id }));
  const { text, isWhole } = signature('f', { rows });
  expect(text).toMatch(/^f\(rows=\[\{"id": 0\}, .*…\)$/);
  expect(isWhole).toBe(false);
});

test('values of secrets are masked, also within others', () => {
  expect(line('{"api_key": "sk-123", "n": 1}', 'f')).toBe(
    'f(api_key=••••, n=1)'
  );
  expect(signature('f', { options: { token: 'abc' } })).toEqual({
    text: 'f(options={"token": "••••"})',
    isWhole: false
  });
  expect(line('{"max_tokens": 100}', 'f')).toBe('f(max_tokens=100)');
});

test('lines, directions and invisible characters are escapes', () => {
  expect(line('{"a": "x\\ny\\u202ez"}', 'f')).toBe('f(a="x\\ny\\u202ez")');
  expect(signature('f\u200b', {}).text).toBe('f\\u200b()');
});

test('a name cannot pass for an argument with a value', () => {
  expect(line('{"a=1, b": 2}', 'f')).toBe('f("a=1, b"=2)');
});

test('a pair of surrogates is not cut', () => {
  const { text } = signature('f', { a: 'x'.repeat(39) + '😀😀' });
  expect(text).toBe(`f(a="${'x'.repeat(39)}"…)`);
});

test.each([
  ['api_key', true],
  ['apiKey', true],
  ['API-KEY', true],
  ['password', true],
  ['auth_token', true],
  ['accessToken', true],
  ['Authorization', true],
  ['key', false],
  ['author', false],
  ['primary_key', false],
  ['monkey', false]
])('whether %s names a secret: %s', (name, isSecret) => {
  expect(isSecretName(name)).toBe(isSecret);
});
