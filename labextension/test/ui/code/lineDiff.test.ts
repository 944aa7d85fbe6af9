import { lineDiff, withContext } from '../../../src/ui/code/lineDiff';

const SIGNS = { same: ' ', removed: '-', added: '+' };

function diff(before: string, after: string): string[] {
  return lineDiff(before, after).map(({ kind, text }) => SIGNS[kind] + text);
}

test.each([
  ['a', 'a', [' a']],
  ['a\nb\nc', 'a\nx\nc', [' a', '-b', '+x', ' c']],
  ['a\nc', 'a\nb\nc', [' a', '+b', ' c']],
  ['a\nb\nc', 'a\nc', [' a', '-b', ' c']],
  ['a\nb', 'b\na', ['-a', ' b', '+a']],
  ['', 'a', ['-', '+a']],
  ['a\na\na', 'a\na', [' a', ' a', '-a']]
])('from %j to %j', (before, after, expected) => {
  expect(diff(before, after)).toEqual(expected);
});

test('lines have the numbers of their text', () => {
  expect(
    lineDiff('a\nb', 'x\nb').map(({ before, after }) => [before, after])
  ).toEqual([
    [1, null],
    [null, 1],
    [2, 2]
  ]);
});

test('long texts that have nothing in common take no time', () => {
  const lines = (name: string): string =>
    Array.from({ length: 5000 }, (_, index) => `${name}${index}`).join('\n');
  expect(lineDiff(lines('a'), lines('b'))).toHaveLength(10_000);
});

test('what is far from a change is left out', () => {
  const before = 'a\nb\nc\nd\ne\nf\ng';
  const shown = withContext(lineDiff(before, before.replace('d', 'x')), 1);
  expect(shown.map(line => line && SIGNS[line.kind] + line.text)).toEqual([
    null,
    ' c',
    '-d',
    '+x',
    ' e',
    null
  ]);
});
