import { hasHidden, label, visible } from '../../../src/ui/text/visibleText';

test.each([
  ['a\u202eb', 'a\\u202eb'],
  ['a\u200bb', 'a\\u200bb'],
  ['a\u0007b', 'a\\u0007b'],
  ['a\u00a0b', 'a\\u00a0b'],
  ['a\ud800b', 'a\\ud800b'],
  ['a\u{e0041}b', 'a\\u{e0041}b'],
  ['a\rb', 'a\\u000db'],
  ['x\u2066y\u2069', 'x\\u2066y\\u2069']
])('shows %j as an escape', (text, shown) => {
  expect(visible(text)).toBe(shown);
  expect(hasHidden(text)).toBe(true);
});

test.each([
  'plain',
  'two\nlines\tand a tab',
  'dos\r\n',
  'Grüße שלום 你好',
  '👩‍💻',
  '❤️'
])('leaves %j as it is', text => {
  expect(visible(text)).toBe(text);
  expect(hasHidden(text)).toBe(false);
});

test('a joiner without a picture is shown', () => {
  expect(visible('a\u200db')).toBe('a\\u200db');
});

test('a label is one short line', () => {
  expect(label('  a\n b ')).toBe('a b');
  expect(label('abcdef', 4)).toBe('abc…');
});

test('a label shows blanks that are not a space as escapes', () => {
  expect(label('delete\u00a0all\u3000now\n  please')).toBe(
    'delete\\u00a0all\\u3000now please'
  );
});

test('a label that is cut ends with a whole character', () => {
  expect(label('👍🏽👍🏽👍🏽', 2)).toBe('👍🏽…');
});
