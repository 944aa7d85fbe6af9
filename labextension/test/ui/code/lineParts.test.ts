import { lineDiff } from '../../../src/ui/code/lineDiff';
import { withParts } from '../../../src/ui/code/lineParts';

/** The lines of a difference: changed parts in brackets, and an ellipsis for what is left out. */
function diff(before: string, after: string): string[] {
  const signs = { same: ' ', removed: '-', added: '+' };
  return withParts(lineDiff(before, after)).map(({ kind, parts }) => {
    const texts = parts.map(part =>
      part.kind === 'gap'
        ? '…'
        : part.kind === 'changed'
          ? `[${part.text}]`
          : part.text
    );
    return signs[kind] + texts.join('');
  });
}

test.each([
  ['total > 100', 'total > 250', ['-total > [10]0', '+total > [25]0']],
  ['ab', 'axb', ['-ab', '+a[x]b']],
  ['aa', 'aaa', ['-aa', '+aa[a]']],
  ['one', 'two', ['-one', '+two']],
  ['a\nb1\nc', 'a\nb2\nc', [' a', '-b[1]', '+b[2]', ' c']],
  ['a1\nb1', 'a2\nb2\nc', ['-a[1]', '-b[1]', '+a[2]', '+b[2]', '+c']],
  ['x😀', 'x😁', ['-x[😀]', '+x[😁]']],
  ['𐀀x', '𐐀x', ['-[𐀀]x', '+[𐐀]x']]
])('from %j to %j', (before, after, expected) => {
  expect(diff(before, after)).toEqual(expected);
});

test('a long line is cut around its change', () => {
  const [head, tail] = ['h'.repeat(300), 't'.repeat(300)];
  expect(diff(`${head}old${tail}`, `${head}new${tail}`)).toEqual([
    `-…${'h'.repeat(60)}[old]${'t'.repeat(60)}…`,
    `+…${'h'.repeat(60)}[new]${'t'.repeat(60)}…`
  ]);
});

test('nothing that is changed is left out, and the lines around it are cut at their ends', () => {
  const [long, around] = ['x'.repeat(500), 'a'.repeat(500)];
  expect(diff(`${around}\nb`, `${around}\nb${long}`)).toEqual([
    ` ${'a'.repeat(200)}…`,
    '-b',
    `+b[${long}]`
  ]);
  expect(diff('b', `b\n${long}`)).toEqual([' b', `+${long}`]);
});

test('no character of two code units is cut in half', () => {
  const faces = '😀'.repeat(150);
  expect(diff(`${faces}-a${faces}`, `${faces}-b${faces}`)).toEqual([
    `-…${'😀'.repeat(30)}-[a]${'😀'.repeat(30)}…`,
    `+…${'😀'.repeat(30)}-[b]${'😀'.repeat(30)}…`
  ]);
});
