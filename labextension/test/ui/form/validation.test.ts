import { nullTranslator } from '@jupyterlab/translation';

import type { IJsonObject } from '../../../src/api/json';
import { parse } from '../../../src/api/json';
import { wrongValues } from '../../../src/ui/form/validation';

const trans = nullTranslator.load('');

/** What is wrong with a value by this schema. */
function wrong(property: IJsonObject, value: string): string[] {
  const schema = {
    type: 'object',
    properties: { x: property },
    required: ['x'],
    $defs: { Size: { type: 'string', enum: ['s', 'm'] } }
  };
  return wrongValues(parse(value) as IJsonObject, schema, trans);
}

const ROWS = {
  type: 'array',
  items: {
    type: 'object',
    properties: { id: { type: 'integer', minimum: 1 } },
    required: ['id']
  }
};

test.each<[IJsonObject, string, string[]]>([
  [{ type: 'integer' }, '{"x": 5}', []],
  [{ type: 'integer' }, '{"x": 12345678901234567890}', []],
  [{ type: 'integer' }, '{"x": "5"}', ['“x”: Not a whole number']],
  [{ type: 'integer' }, '{"x": null}', ['“x”: Not a whole number']],
  [{ type: 'integer' }, '{}', ['“x”: Required']],
  [{ type: 'boolean' }, '{"x": 1}', ['“x”: Not true or false']],
  [{ enum: ['s', 'm'] }, '{"x": "l"}', ['“x”: Not one of the possible values']],
  [ROWS, '{"x": [{"id": 1}, {"id": 0}]}', ['“x.1.id”: Must be 1 or more']],
  [ROWS, '{"x": [{}]}', ['“x.0.id”: Required']],
  [ROWS, '{"x": {}}', ['“x”: Not a list']],
  [ROWS, '{"x": [{"id": 1, "more": 2}], "y": 3}', []]
])('by %j, %s is wrong: %j', (property, value, expected) => {
  expect(wrong(property, value)).toEqual(expected);
});

test.each<IJsonObject>([
  { anyOf: [{ type: 'integer' }, { type: 'null' }] },
  { anyOf: [{ $ref: '#/$defs/Size' }, { type: 'null' }] },
  { anyOf: [{ type: 'string', enum: ['s'] }, { type: 'null' }] },
  { oneOf: [{ const: 's' }, { type: 'null' }] },
  { $ref: '#/$defs/Size' },
  { enum: ['s', null] },
  { type: ['integer', 'string'] },
  { allOf: [{ type: 'integer' }] }
])('%j is no reason to refuse what the server may accept', property => {
  expect(wrong(property, '{"x": null}')).toEqual([]);
});

test('only the first wrong values are named', () => {
  const items = Array.from({ length: 20 }, () => ({ id: 0 }));
  expect(wrong(ROWS, JSON.stringify({ x: items }))).toHaveLength(5);
});
