import type { IJsonObject } from '../../../src/api/json';
import { replacements } from '../../../src/ui/card/replacements';

test.each([
  ['old', 'new'],
  ['old_text', 'new_text'],
  ['oldString', 'newString'],
  ['before', 'after'],
  ['original-code', 'replacement-code']
])('%s and %s are a pair', (old, replacement) => {
  const found = replacements({ [old]: 'a', other: 'c', [replacement]: 'b' });
  const texts = { before: 'a', after: 'b' };
  expect(found).toEqual([
    { old, name: replacement, ...texts, whole: texts, hidden: 0 }
  ]);
});

test.each<[IJsonObject]>([
  [{ old: 'a' }],
  [{ old: 'a', new: 'a' }],
  [{ old: 1, new: 2 }],
  [{ older: 'a', newer: 'b' }],
  [{ old_text: 'a', new_name: 'b' }],
  [{ old_password: 'a', new_password: 'b' }],
  [{ old: 'a', new: 'b'.repeat(100_000) }]
])('arguments %# have none', values => {
  expect(replacements(values)).toEqual([]);
});

test('the entry of a server is compared with the one that was trusted, member by member', () => {
  const before = { command: 'npx', args: ['-y', 'db@1'], env: { TOKEN: 'a' } };
  const after = { command: 'npx', args: ['-y', 'db@2'], env: { TOKEN: 'b' } };
  const [found] = replacements({
    name: 'db',
    configuration: after,
    trusted_before: before
  });
  expect(found.name).toBe('configuration');
  expect(found.before).toContain('\n    "db@1"\n');
  expect(found.after).toBe(found.before.replace('db@1', 'db@2'));
  expect(found.after).not.toContain('"b"');
  expect(found.whole.after).toContain('"b"');
  expect(found.hidden).toBe(2);
});

test.each<[IJsonObject]>([
  [{ old: { token: 'a' }, new: { token: 'b' } }],
  [{ old: ['a'], new: 'a' }],
  [{ old: null, new: { a: 1 } }]
])('objects %# have no difference to show', values => {
  expect(replacements(values)).toEqual([]);
});
