import { parse } from '../../../src/api/json';
import type { IJsonObject } from '../../../src/api/json';
import type { IApproval } from '../../../src/api/protocol';
import {
  isUnusual,
  isWhollyShown,
  itemsOf,
  layoutOf,
  lineOf
} from '../../../src/features/approvals/batches';
import { allowed, approval, trans } from '../../examples';

function call(id: string, json: string, tool = 'restock'): IApproval {
  const before = approval({ id });
  const values = parse(json) as IJsonObject;
  return { ...before, call: { ...before.call, tool, arguments: values } };
}

const no = (): boolean => false;

test('requests of one tool stand together, in the place of the oldest', () => {
  const all = [
    call('a', '{"n": 1}'),
    call('b', '{}', 'other'),
    call('c', '{"n": 2}')
  ];
  const items = itemsOf(all, no, no);
  expect(
    items.map(({ approvals, isBatch }) => [
      isBatch,
      approvals.map(({ id }) => id).join('')
    ])
  ).toEqual([
    [true, 'ac'],
    [false, 'b']
  ]);
});

test('tools that say other things of themselves are never in one table', () => {
  const harmless = call('a', '{}');
  const destructive = {
    ...call('b', '{}'),
    tool: { ...harmless.tool, annotations: { destructiveHint: true } }
  };
  expect(itemsOf([harmless, destructive], no, no)).toHaveLength(2);
});

test('calls from sandboxes with settings of different people are never in one table', () => {
  const sites = call('a', '{}');
  const users = {
    ...sites,
    id: 'b',
    call: { ...sites.call, has_own_settings: true }
  };
  expect(itemsOf([sites, users], no, no)).toHaveLength(2);
});

test('a table stays one while a row is in it, and a card with an open form stays alone', () => {
  const all = [call('a', '{}'), call('b', '{}'), call('c', '{}')];
  const [one] = itemsOf(all.slice(0, 1), () => true, no);
  expect(one?.isBatch).toBe(true);
  const items = itemsOf(all, no, id => id === 'b');
  expect(items.map(({ approvals }) => approvals.length)).toEqual([2, 1]);
});

test('what is the same in all rows is said once, and what differs has a column', () => {
  const all = [
    call('a', '{"shop": "Oslo", "n": 1, "q": 25}'),
    call('b', '{"shop": "Oslo", "n": 2, "q": 25}'),
    call('c', '{"shop": "Oslo", "n": 3, "q": 25}'),
    call('d', '{"shop": "Oslo", "n": 4, "q": 2500}')
  ];
  const { same, columns } = layoutOf(all, trans);
  expect(same.map(({ name, value }) => `${name}=${value.text}`)).toEqual([
    'shop="Oslo"'
  ]);
  expect(columns).toEqual([
    { name: 'n', usual: null },
    { name: 'q', usual: '25' }
  ]);
  const marked = all.filter(one => columns.some(it => isUnusual(one, it)));
  expect(marked.map(({ id }) => id)).toEqual(['d']);
});

test('an argument that only some rows have differs', () => {
  const all = [call('a', '{"n": 1}'), call('b', '{}')];
  const { same, columns } = layoutOf(all, trans);
  expect(same).toEqual([]);
  expect(columns.map(({ name }) => name)).toEqual(['n']);
});

test('a row of many arguments is a line of them', () => {
  const one = call('a', '{"a": 1, "b": "x"}');
  const columns = ['a', 'b', 'c'].map(name => ({ name, usual: null }));
  expect(lineOf(one, columns, trans)).toBe('a=1, b="x"');
});

test.each([
  ['{"n": 1}', true],
  [`{"text": "${'x'.repeat(300)}"}`, false],
  ['{"api_key": "abc"}', false]
])('whether a table shows all of %s: %s', (json, isShown) => {
  expect(isWhollyShown(call('a', json))).toBe(isShown);
});

test('letters that are not what they look like have to be seen on the card', () => {
  const one = call('a', '{"n": 1}');
  const look_alikes = [{ of: 'value', code: 'U+0430', name: '', like: 'a' }];
  expect(isWhollyShown({ ...one, call: { ...one.call, look_alikes } })).toBe(
    false
  );
});

test('what was decided keeps its place among the others', () => {
  const rows = [call('a', '{}'), { ...allowed(), ...call('b', '{}') }];
  expect(itemsOf(rows, no, no)[0]?.approvals.map(({ id }) => id)).toEqual([
    'a',
    'b'
  ]);
});
