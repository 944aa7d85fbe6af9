import { readItem } from '../../src/api/threads';
import { itemData } from '../threads';

test('an item is read with its turn', () => {
  const data = itemData({ type: 'notice', code: 'limit', text: 'a' }, false);
  expect(readItem(data)).toEqual({
    threadId: 'h1',
    turnId: 't1',
    item: { type: 'notice', id: 'i1', code: 'limit', text: 'a' },
    isComplete: false,
    isAnswer: false
  });
});

test.each([
  undefined,
  null,
  'text',
  {},
  { item: null },
  itemData({ type: 'unknown', text: 'a' }),
  itemData({ type: 'constructor', text: 'a' }),
  itemData({ type: 'agent_message', text: { toString: 'a' } }),
  itemData({ type: 'code_run', code: 'a', status: 1, error: '' })
])('%j is no item', data => {
  expect(readItem(data)).toBeNull();
});
