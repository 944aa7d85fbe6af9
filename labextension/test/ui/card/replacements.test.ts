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
  expect(found).toEqual([{ name: replacement, before: 'a', after: 'b' }]);
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
