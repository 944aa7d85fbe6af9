import { oldestFirst } from '../../src/model/entry';
import { approval } from '../examples';

test('requests of one millisecond stand in the order of their microseconds', () => {
  const first = approval({
    id: 'b',
    created_at: '2026-01-01T00:00:00.000100Z'
  });
  const next = approval({ id: 'a', created_at: '2026-01-01T00:00:00.000200Z' });
  expect([next, first].sort(oldestFirst)).toEqual([first, next]);
});

test('requests of one moment stand in the order of their ids', () => {
  const [first, next] = [approval({ id: 'a' }), approval({ id: 'b' })];
  expect([next, first].sort(oldestFirst)).toEqual([first, next]);
});
