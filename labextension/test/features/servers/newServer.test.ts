import {
  EMPTY,
  entryOf,
  filledForm,
  formOf,
  serversIn
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

const ENTRY = { command: 'uvx', args: ['mcp-shop', '--all'] };

test.each([
  { mcpServers: { shop: ENTRY } },
  { servers: { shop: ENTRY } },
  { mcp: { servers: { shop: ENTRY } } },
  { shop: ENTRY }
])('a server is found in %j', block => {
  expect(serversIn(`\n${JSON.stringify(block, null, 2)}\n`)).toEqual([
    ['shop', ENTRY]
  ]);
});

test('the braces around a named entry may be missing, and a comma follow', () => {
  const text = `"shop": ${JSON.stringify(ENTRY)},`;
  expect(serversIn(text)).toEqual([['shop', ENTRY]]);
});

test.each([
  '',
  'uvx mcp-shop',
  '{}',
  '[]',
  '{"mcpServers": {}}',
  '{"mcpServers": {"shop": {}}}',
  '{"mcpServers": {"shop": {"command": 1}}}',
  JSON.stringify(ENTRY)
])('none is found in %j', text => {
  expect(serversIn(text)).toEqual([]);
});

test.each([
  ['program', ENTRY],
  ['program', { command: 'x', env: { T: '${T}' } }],
  ['address', { url: 'https://x.example/mcp', headers: { A: 'b: ${T}' } }],
  ['json', { command: 'x', env: { T: 'secret' } }],
  ['json', { command: 'x', args: ['a', ''] }],
  ['json', { command: 'x', args: ['a\nb'] }],
  ['json', { command: 'x', args: [1] }],
  ['json', { command: 'x', cwd: '/tmp' }],
  ['json', { command: 'x', url: 'https://x.example' }]
])('a form of the kind %s stands for %j', (kind, entry) => {
  const form = filledForm(['shop', entry]);
  expect([form.kind, form.name, entryOf(form)]).toEqual([kind, 'shop', entry]);
});
