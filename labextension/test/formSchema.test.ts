import type { IJsonObject } from '../src/json';
import { parse } from '../src/json';
import { toFormSchema, toUiSchema } from '../src/formSchema';

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

test('arguments with more digits than a form keeps have no form', () => {
  const values = parse('{"x": 12345678901234567890}') as IJsonObject;
  expect(toFormSchema(schemaOf({ type: 'integer' }), values)).toBeNull();
});

test('text with lines gets room for lines', () => {
  const form = toFormSchema(schemaOf({ type: 'string' }), {});
  expect(toUiSchema(form?.schema ?? {}, { x: 'a\nb' })).toEqual({
    x: { 'ui:widget': 'textarea' }
  });
  expect(toUiSchema(form?.schema ?? {}, { x: 'a' })).toEqual({ x: {} });
});
