import type { TranslationBundle } from '@jupyterlab/translation';

import type { IJsonObject } from '../../../src/api/json';
import { parse, stringify } from '../../../src/api/json';
import {
  fromFormData,
  toFormData,
  toFormSchema,
  toUiSchema,
  toValidated,
  withFields,
  withOthers
} from '../../../src/ui/form/formSchema';

function schemaOf(property: IJsonObject): IJsonObject {
  return { type: 'object', properties: { x: property } };
}

/** What the form has for the one property, or `null`. */
function fieldOf(property: IJsonObject, values: IJsonObject = {}): unknown {
  const form = toFormSchema(schemaOf(property), values);
  return (form?.schema['properties'] as IJsonObject | undefined)?.['x'] ?? null;
}

test('copies what shapes a field', () => {
  const property = { type: 'integer', minimum: 1, description: 'How many' };
  expect(fieldOf(property)).toEqual({ ...property, title: 'x' });
});

test('names the default but does not set it', () => {
  expect(fieldOf({ type: 'integer', default: 5 })).toEqual({
    type: 'integer',
    title: 'x',
    description: '(default: 5)'
  });
});

test('names the default in the language of the page', () => {
  const french = {
    __: (text: string, value: string) =>
      text === '(default: %1)' ? `(par défaut : ${value})` : text
  } as unknown as TranslationBundle;
  const source = schemaOf({ type: 'integer', default: 5 });
  expect(toFormSchema(source, {}, french)?.schema['properties']).toMatchObject({
    x: { description: '(par défaut : 5)' }
  });
});

test('leaves out what could hang or mislead', () => {
  expect(
    fieldOf({ type: 'string', pattern: '(a+)+$', format: 'uri', title: 'y' })
  ).toEqual({ type: 'string', title: 'x' });
});

test('never follows a reference out of the schema', () => {
  expect(fieldOf({ $ref: 'http://example.org/x.json' })).toBeNull();
  expect(fieldOf({ $ref: 'file:///etc/passwd' })).toBeNull();
});

test('follows a reference within the schema', () => {
  const source = {
    ...schemaOf({ $ref: '#/$defs/Size' }),
    $defs: { Size: { enum: ['s', 'm'] } }
  };
  expect(toFormSchema(source, {})?.schema['properties']).toEqual({
    x: { type: 'string', enum: ['s', 'm'], title: 'x' }
  });
});

test('a schema that refers to itself ends', () => {
  const node = {
    type: 'object',
    properties: { next: { $ref: '#/properties/x' } }
  };
  expect(fieldOf(node)).toBeNull();
  expect(fieldOf({ $ref: '#/properties/x' })).toBeNull();
});

test('sees through an optional type', () => {
  const anyOf = [{ type: 'string' }, { type: 'null' }];
  expect(fieldOf({ anyOf })).toEqual({ type: ['string', 'null'], title: 'x' });
});

test('a thousand properties are for JSON', () => {
  const properties = Object.fromEntries(
    Array.from({ length: 1000 }, (_, index) => [
      `p${index}`,
      { type: 'string' }
    ])
  );
  const form = toFormSchema({ type: 'object', properties }, {});
  expect(form?.jsonOnly).toHaveLength(800);
});

test('a value that the field would change is for JSON', () => {
  const source: IJsonObject = {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'string' } }
  };
  expect(toFormSchema(source, { a: 'x', b: 7, c: null })?.jsonOnly).toEqual([
    'b',
    'c'
  ]);
});

test('a text in the place of a number has a field unless it would become a number there', () => {
  const source: IJsonObject = {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'integer' } }
  };
  const jsonOnly = (values: IJsonObject): string[] | undefined =>
    toFormSchema({ ...source }, { ...values, b: 1 })?.jsonOnly;
  expect(jsonOnly({ a: 'much' })).toEqual([]);
  expect(jsonOnly({ a: '7' })).toEqual(['a']);
  expect(jsonOnly({ a: '' })).toEqual(['a']);
});

const NUMBERS: IJsonObject = {
  type: 'object',
  properties: {
    '2': { type: 'integer' },
    note: { type: 'string' },
    lines: {
      type: 'array',
      items: { type: 'object', properties: { price: { type: 'number' } } }
    }
  }
};

test('a form shows and gives back the digits and the order of what it was opened with', () => {
  const text =
    '{"note":"a","2":12345678901234567890,"lines":[{"price":149.0}]}';
  const values = parse(text) as IJsonObject;
  const schema = toFormSchema(NUMBERS, values)?.schema ?? {};
  const data = toFormData(values, schema) as IJsonObject;
  expect(data).toMatchObject({ '2': '12345678901234567890' });
  expect(stringify(fromFormData({ ...data }, schema, values))).toBe(text);
});

test('what was typed is what is sent, and what was emptied is not sent', () => {
  const { schema = {} } = toFormSchema(NUMBERS, {}) ?? {};
  const typed = { '2': '-0', note: undefined, lines: [{ price: '1e23' }] };
  const values = fromFormData(typed as unknown as IJsonObject, schema);
  expect(stringify(values)).toBe('{"2":-0,"lines":[{"price":1e23}]}');
  expect(fromFormData({ '2': 'two' }, schema)).toEqual({ '2': 'two' });
});

test('what no field is for stays exactly as it was, in its place', () => {
  const text = '{"b":1e23,"2":7,"1":149.0,"note":"a"}';
  const values = parse(text) as IJsonObject;
  const { schema = {} } = toFormSchema(NUMBERS, values) ?? {};
  expect(Object.keys(withFields(values, schema))).toEqual(['2', 'note']);
  const edited = { '2': 8, note: 'a', lines: [] };
  const after = withOthers(edited, values, schema);
  expect(stringify(after)).toBe(
    '{"b":1e23,"2":8,"1":149.0,"note":"a","lines":[]}'
  );
  expect(stringify(values)).toBe(text);
});

test('limits hold for the numbers that the texts of fields stand for', () => {
  const { schema = {} } = toFormSchema(NUMBERS, {}) ?? {};
  const typed = { '2': '12', note: '7', lines: [{ price: '149.0' }] };
  expect(toValidated(typed, schema)).toEqual({
    '2': 12,
    note: '7',
    lines: [{ price: 149 }]
  });
});

test('text with lines gets room for lines', () => {
  const form = toFormSchema(schemaOf({ type: 'string' }), {});
  expect(toUiSchema(form?.schema ?? {}, { x: 'a\nb' })).toEqual({
    x: { 'ui:widget': 'textarea' }
  });
  expect(toUiSchema(form?.schema ?? {}, { x: 'a' })).toEqual({ x: {} });
});

test('a field of objects in a list gets room for lines if one of them has lines', () => {
  const item = {
    type: 'object',
    properties: { note: { type: 'string' }, code: { type: 'string' } }
  };
  const { schema = {} } =
    toFormSchema(schemaOf({ type: 'array', items: item }), {}) ?? {};
  const x: IJsonObject[] = [{ note: 'short' }, { code: 'A', note: 'a\nb' }];
  expect(toUiSchema(schema, { x })).toEqual({
    x: { items: { note: { 'ui:widget': 'textarea' }, code: {} } }
  });
});
