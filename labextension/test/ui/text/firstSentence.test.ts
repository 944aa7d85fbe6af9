import {
  firstSentence,
  isOneSentence
} from '../../../src/ui/text/firstSentence';

test.each([
  ['Delete an order for good. There is no undo.', 'Delete an order for good.'],
  ['Add up orders\n    for each month. More.', 'Add up orders for each month.'],
  ['List orders\n\nThe newest first.', 'List orders'],
  ['Costs 1.50 a call! Really.', 'Costs 1.50 a call!'],
  ['no full stop', 'no full stop'],
  ['  ', '']
])('of %j it is %j', (text, sentence) => {
  expect(firstSentence(text)).toBe(sentence);
});

test('a wrapped sentence is one, and two are not', () => {
  expect(isOneSentence('Add up\norders. ')).toBe(true);
  expect(isOneSentence('Add up. Orders.')).toBe(false);
});
