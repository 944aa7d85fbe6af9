import {
  changedNames,
  draftArguments,
  openDraft,
  switchMode
} from '../../../src/ui/form/draft';
import type { IJsonObject } from '../../../src/api/json';
import { parse, stringify } from '../../../src/api/json';
import { trans } from '../../examples';

const SCHEMA: IJsonObject = {
  type: 'object',
  properties: { price: { type: 'number' } }
};

test('opens in a form where there is one', () => {
  expect(openDraft({ price: 1 }, SCHEMA).mode).toBe('form');
  expect(openDraft({ price: 1 }, { type: 'object' }).mode).toBe('json');
});

test('JSON keeps every digit on its way', () => {
  const text = '{"price":12345678901234567890}';
  const draft = openDraft(parse(text) as IJsonObject, SCHEMA);
  const { values } = draftArguments(draft, trans);
  expect(values && stringify(values)).toBe(text);
});

test('a text that is not JSON is kept and explained', () => {
  const draft = {
    ...openDraft({}, { type: 'object' }),
    text: '{"price": }'
  };
  const { values, error } = draftArguments(draft, trans);
  expect(values).toBeNull();
  expect(error).toContain('line 1, column 11');
  const same = switchMode(draft, 'form', SCHEMA, trans);
  expect(same).toMatchObject({ mode: 'json', text: '{"price": }' });
  expect(same.problem).toBeTruthy();
});

test('only an object is arguments', () => {
  const draft = { ...openDraft({}, { type: 'object' }), text: '[1]' };
  expect(draftArguments(draft, trans).values).toBeNull();
});

test('form and JSON show the same values', () => {
  const form = openDraft({ price: 149 }, SCHEMA);
  const json = switchMode(form, 'json', SCHEMA, trans);
  const edited = { ...json, text: '{"price": 14.9}' };
  const back = switchMode(edited, 'form', SCHEMA, trans);
  expect(back).toMatchObject({ mode: 'form', values: { price: 14.9 } });
});

test('names what was added, removed or changed', () => {
  expect(changedNames({ a: 1, b: 2, c: [3] }, { b: 3, c: [3], d: 4 })).toEqual([
    'a',
    'b',
    'd'
  ]);
});
