import {
  EMPTY,
  entryOf,
  formOf
} from '../../../src/features/servers/newServer';

test('a program gets its arguments as they stand, and references to variables', () => {
  const form = {
    ...EMPTY,
    command: ' npx ',
    args: '-y\n\n two words \n',
    variables: 'SHOP_TOKEN\n'
  };
  expect(entryOf(form)).toEqual({
    command: 'npx',
    args: ['-y', ' two words '],
    env: { SHOP_TOKEN: '${SHOP_TOKEN}' }
  });
  expect(entryOf({ ...EMPTY, command: 'x' })).toEqual({ command: 'x' });
});

test('an address gets its headers', () => {
  const form = {
    ...EMPTY,
    kind: 'address' as const,
    url: 'https://x.example/mcp',
    headers: 'Authorization: Bearer ${T}\nX-A:b:c'
  };
  expect(entryOf(form)).toEqual({
    url: 'https://x.example/mcp',
    headers: { Authorization: 'Bearer ${T}', 'X-A': 'b:c' }
  });
});

test.each([
  { ...EMPTY, variables: 'A=secret' },
  { ...EMPTY, kind: 'address' as const, headers: 'no colon' },
  { ...EMPTY, kind: 'json' as const, json: '[]' },
  { ...EMPTY, kind: 'json' as const, json: '{' }
])('what cannot be read is refused: %j', form => {
  expect(() => entryOf(form)).toThrow(SyntaxError);
});

test('an entry of another program comes back as it was', () => {
  const entry = { command: 'x', args: ['a'] };
  expect(entryOf(formOf('shop', entry))).toEqual(entry);
});
