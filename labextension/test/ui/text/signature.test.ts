import { parse } from '../../../src/api/json';
import type { IJsonObject } from '../../../src/api/json';
import { isSecretName } from '../../../src/ui/text/secretNames';
import { signature as signatureIn } from '../../../src/ui/text/signature';
import { trans } from '../../examples';

function signature(
  tool: string,
  values: IJsonObject
): { text: string; isWhole: boolean } {
  return signatureIn(tool, values, trans);
}

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

test('a long text has its beginning and its end, and what says so is outside of their quotes', () => {
  const value = `Ada ${'x'.repeat(51_300)} OR 1=1`;
  const { text, isWhole } = signature('find', { text: value });
  expect(text).toBe(
    `find(text="Ada ${'x'.repeat(20)}"… (51,311 characters) …"${'x'.repeat(17)} OR 1=1")`
  );
  expect(isWhole).toBe(false);
});

test('a text is whole if saying how long it is would take as much room as the rest of it', () => {
  expect(signature('f', { text: 'x'.repeat(68) }).isWhole).toBe(true);
  expect(signature('f', { text: 'x'.repeat(69) }).isWhole).toBe(false);
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
  expect(text).toMatch(/^f\(argument_0=0, .*, …, argument_29=29\)$/);
  expect(isWhole).toBe(false);
});

test('a nested value is shortened', () => {
  const rows = Array.from({ length: 1000 }, (_, id) => ({ id }));
  const { text, isWhole } = signature('f', { rows });
  expect(text).toMatch(/^f\(rows=\[\{"id": 0\}, .* … .*, \{"id": 999\}\]\)$/);
  expect(text.length).toBeLessThan(60);
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
  const value = `${'x'.repeat(23)}😀${'-'.repeat(30)}😀${'y'.repeat(23)}`;
  const { text } = signature('f', { a: value });
  expect(text).toBe(
    `f(a="${'x'.repeat(23)}"… (80 characters) …"${'y'.repeat(23)}")`
  );
});

test('a secret at the end of a long value is masked', () => {
  const { text } = signature('f', {
    o: { text: 'x'.repeat(100), token: 'abc' }
  });
  expect(text).toMatch(/"token": "••••"\}\)$/);
});

test('a secret in a text that is JSON is masked, and the call is not shown whole', () => {
  const body = '{"token": "abc", "a": 1}';
  expect(signature('f', { body })).toEqual({
    text: 'f(body="{\\"token\\": \\"••••••••\\", \\"a\\": 1}")',
    isWhole: false
  });
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
