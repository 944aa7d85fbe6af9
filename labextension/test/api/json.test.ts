import {
  ExactNumber,
  isEqual,
  JsonSyntaxError,
  namesOf,
  parse,
  stringify
} from '../../src/api/json';
import type { IJsonObject } from '../../src/api/json';

test('keeps the digits of a number that a double cannot hold', () => {
  const text = '{"id":12345678901234567890,"ratio":0.1234567890123456789}';
  expect(stringify(parse(text))).toBe(text);
});

test('reads an ordinary number as a number', () => {
  expect(parse('[0, -1, 14.9, 9007199254740991]')).toEqual([
    0, -1, 14.9, 9007199254740991
  ]);
});

test.each([
  '149.0',
  '-0',
  '-0.0',
  '1e5',
  '1E+5',
  '0.0000001',
  '100000000000000000000000',
  '1000000000000000000000',
  '14.90'
])('writes %s as it was written', text => {
  expect(stringify(parse(text))).toBe(text);
});

test('names that look like positions keep their places', () => {
  const text = '{"b":1,"10":"second","2":{"1":0,"0":1},"a":[{"7":0,"6":1}]}';
  const value = parse(text) as IJsonObject;
  expect(stringify(value)).toBe(text);
  expect(namesOf(value)).toEqual(['b', '10', '2', 'a']);
  expect(namesOf(parse('{"2":1,"1":2,"2":3}') as IJsonObject)).toEqual([
    '2',
    '1'
  ]);
});

test('what is undefined is not printed', () => {
  const value = { id: 1, note: undefined } as unknown as IJsonObject;
  expect(stringify(value)).toBe('{"id":1}');
});

test('reads a number that is out of range as its text', () => {
  expect(parse('1e999')).toEqual(new ExactNumber('1e999'));
});

test('reads what JSON.parse reads', () => {
  const text =
    ' {"a": [true, false, null, "\\u202e\\"\\n", {}], "": {"b": []}} ';
  expect(parse(text)).toEqual(JSON.parse(text));
});

test('keeps a name that JavaScript has a use for', () => {
  expect(stringify(parse('{"__proto__":{"a":1}}'))).toBe(
    '{"__proto__":{"a":1}}'
  );
});

test.each([
  ['{"a": 1,}', 1, 9],
  ['{\n  "a" 1}', 2, 7],
  ['[1 2]', 1, 4],
  ['"open', 1, 1],
  ['', 1, 1],
  ['{} x', 1, 4]
])('says where %j stops being JSON', (text, line, column) => {
  expect(() => parse(text)).toThrow(JsonSyntaxError);
  try {
    parse(text);
  } catch (error) {
    expect(error).toMatchObject({ line, column });
  }
});

test('prints as JSON.stringify does', () => {
  const value = { a: [1, { b: 'c' }], d: {}, e: [] };
  expect(stringify(value, 2)).toBe(JSON.stringify(value, null, 2));
});

test('equal objects may order their names differently', () => {
  expect(isEqual({ a: 1, b: [2] }, { b: [2], a: 1 })).toBe(true);
  expect(isEqual({ a: 1 }, { a: '1' })).toBe(false);
});
