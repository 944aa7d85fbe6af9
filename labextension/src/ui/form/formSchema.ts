/**
 * A form for a tool's arguments, made from its JSON Schema.
 *
 * The schema comes from an MCP server and is not trusted. Only keywords that shape a form are copied, within a budget;
 * regular expressions, formats and remote references are left out, and the server checks the result against the
 * whole schema. Defaults are left out too: what the code did not send must not be added by looking at it.
 */
import { nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';

import {
  ExactNumber,
  isObject,
  JsonSyntaxError,
  namesOf,
  parse,
  setMember,
  setOrder,
  stringify
} from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { label } from '../text/visibleText';

/** The schema for a form, and the arguments that it cannot edit. */
export interface IFormSchema {
  schema: IJsonObject;
  /** The names of arguments that can only be edited as JSON. */
  jsonOnly: string[];
}

/** The maximum number of schemas in a form, and their maximum depth. */
const MAX_NODES = 200;
const MAX_DEPTH = 5;
const MAX_CHOICES = 100;

const SCALARS = ['string', 'integer', 'number', 'boolean'];

/** Keywords that are copied unchanged, with the type of their value. */
const KEPT: Record<string, 'number' | 'boolean'> = {
  minimum: 'number',
  maximum: 'number',
  exclusiveMinimum: 'number',
  exclusiveMaximum: 'number',
  multipleOf: 'number',
  minLength: 'number',
  maxLength: 'number',
  minItems: 'number',
  maxItems: 'number',
  uniqueItems: 'boolean'
};

/**
 * Create a form's schema for these arguments. Only who shows the form needs its texts translated.
 *
 * Returns `null` where a form would be of no use: then raw JSON is what is left.
 */
export function toFormSchema(
  source: IJsonObject,
  values: IJsonObject,
  trans: TranslationBundle = nullTranslator.load('')
): IFormSchema | null {
  if (!isObject(source['properties'])) {
    return null;
  }
  const reader = new SchemaReader(source, trans);
  const properties: IJsonObject = {};
  const jsonOnly: string[] = [];
  for (const name of Object.keys(source['properties'])) {
    const property = reader.read(source['properties'][name], 1);
    if (property && isFit(property, values[name])) {
      properties[name] = { ...property, title: label(name) };
    } else {
      jsonOnly.push(name);
    }
  }
  const known = new Set([...Object.keys(properties), ...jsonOnly]);
  jsonOnly.push(...Object.keys(values).filter(name => !known.has(name)));
  if (Object.keys(properties).length === 0) {
    return null;
  }
  return {
    schema: {
      type: 'object',
      properties,
      required: requiredNames(source, properties)
    },
    jsonOnly
  };
}

/**
 * Values as a form has them: numbers are the text of their field, or a field would show, and send back, other digits than
 * were typed.
 */
export function toFormData(value: JsonValue, schema: JsonValue): JsonValue {
  return isNumber(value) && isNumeric(schema)
    ? stringify(value)
    : mapParts(value, schema, toFormData);
}

/**
 * The values typed into a form, with the names in the original order. An emptied field is omitted.
 */
export function fromFormData(
  data: JsonValue,
  schema: JsonValue,
  before?: JsonValue
): JsonValue {
  if (typeof data === 'string' && isNumeric(schema)) {
    return numberOf(data);
  }
  const values = mapParts(data, schema, fromFormData, before);
  if (isObject(values) && isObject(before)) {
    setOrder(values, namesOf(before));
  }
  return values;
}

/** The arguments for which a form has fields. The library that renders it would copy the others. */
export function withFields(
  values: IJsonObject,
  { properties }: IJsonObject
): IJsonObject {
  return pick(values, name => hasMember(properties, name));
}

/** Whether a form has a field for an argument. */
export function hasField(
  { properties }: IJsonObject,
  name: string | null
): boolean {
  return name !== null && hasMember(properties, name);
}

/** The values of a form's fields, together with the other arguments as they were. */
export function withOthers(
  edited: IJsonObject,
  before: IJsonObject,
  { properties }: IJsonObject
): IJsonObject {
  const values = pick(before, name => !hasMember(properties, name));
  for (const name of Object.keys(edited)) {
    setMember(values, name, edited[name]);
  }
  setOrder(values, [...new Set([...namesOf(before), ...namesOf(edited)])]);
  return values;
}

function pick(
  values: IJsonObject,
  isWanted: (name: string) => boolean
): IJsonObject {
  const picked: IJsonObject = {};
  for (const name of namesOf(values).filter(isWanted)) {
    setMember(picked, name, values[name]);
  }
  return picked;
}

function hasMember(object: JsonValue, name: string): boolean {
  return isObject(object) && Object.hasOwn(object, name);
}

/** The numbers for a validator: rounded, which does not matter for limits. */
export function toValidated(value: JsonValue, schema: JsonValue): JsonValue {
  const found = typeof value === 'string' && isNumeric(schema);
  const number = found ? numberOf(value) : value;
  return number instanceof ExactNumber
    ? Number(number.text)
    : mapParts(number, schema, toValidated);
}

/** A number as it was typed; a text that is not a number stays as it is, for the server to refuse. */
function numberOf(text: string): JsonValue {
  try {
    const value = parse(text);
    return isNumber(value) ? value : text;
  } catch (error) {
    if (error instanceof JsonSyntaxError) {
      return text;
    }
    throw error;
  }
}

/** Map the items of an array or the members of an object, each with its schema. */
function mapParts(
  value: JsonValue,
  schema: JsonValue,
  map: (part: JsonValue, schema: JsonValue, before?: JsonValue) => JsonValue,
  before?: JsonValue
): JsonValue {
  const { items = null, properties = null } = isObject(schema) ? schema : {};
  if (Array.isArray(value)) {
    const old = Array.isArray(before) ? before : [];
    // An item that was emptied is still an item.
    return value.map((part, index) => map(part ?? '', items, old[index]));
  }
  if (!isObject(value)) {
    return value;
  }
  const mapped: IJsonObject = {};
  for (const name of namesOf(value)) {
    const part: JsonValue | undefined = value[name];
    if (part !== undefined) {
      const own = isObject(properties) ? (properties[name] ?? null) : null;
      const old = isObject(before) ? before[name] : undefined;
      setMember(mapped, name, map(part, own, old));
    }
  }
  setOrder(mapped, namesOf(value));
  return mapped;
}

function isNumber(value: JsonValue | undefined): boolean {
  return typeof value === 'number' || value instanceof ExactNumber;
}

function isNumeric(schema: JsonValue): boolean {
  const types = isObject(schema) ? [schema['type']].flat() : [];
  const isChoice = isObject(schema) && 'enum' in schema;
  return !isChoice && (types.includes('number') || types.includes('integer'));
}

/** The widgets for these values: text with several lines needs space for them. */
export function toUiSchema(
  schema: IJsonObject,
  value: JsonValue | undefined
): IJsonObject {
  return toWidgets(schema, [value]);
}

/** The number of characters in a field of one line, and in all fields of a row. */
const LINE = 60;
const ROW = 96;

/** The widgets of one schema for all of its values: the items of a list, or what they have by one name. */
function toWidgets(
  schema: IJsonObject,
  values: readonly (JsonValue | undefined)[],
  longest = LINE
): IJsonObject {
  const ui: IJsonObject = {};
  if (isObject(schema['properties'])) {
    const { properties } = schema;
    for (const name of Object.keys(properties)) {
      const property = properties[name];
      ui[name] = toWidgets(
        isObject(property) ? property : {},
        values.map(value => (isObject(value) ? value[name] : undefined)),
        longest
      );
    }
  } else if (isObject(schema['items'])) {
    const items = values.flatMap(value => (Array.isArray(value) ? value : []));
    ui['items'] = toWidgets(schema['items'], items, inRow(schema['items']));
    nameChoices(ui, schema['items']); // the library looks for those of several boxes here
  } else if (
    values.some(value => isLong(value, longest)) &&
    !('enum' in schema)
  ) {
    ui['ui:widget'] = 'textarea';
  } else if (schema['type'] === 'boolean') {
    ui['ui:widget'] = 'select'; // a box has no third state for what is not given
  }
  nameChoices(ui, schema);
  return ui;
}

function nameChoices(ui: IJsonObject, { titles }: IJsonObject): void {
  if (titles !== undefined) {
    ui['ui:enumNames'] = titles;
  }
}

/** The number of characters that fit into the field of an object in a row with others: what is cut off is not seen. */
function inRow({ properties }: IJsonObject): number {
  const count = isObject(properties) ? Object.keys(properties).length : 1;
  return Math.min(LINE, Math.floor(ROW / Math.max(1, count)));
}

function isLong(value: JsonValue | undefined, longest: number): boolean {
  return (
    typeof value === 'string' &&
    (value.includes('\n') || value.length > longest)
  );
}

function requiredNames(source: IJsonObject, properties: IJsonObject): string[] {
  const { required } = source;
  return Array.isArray(required)
    ? required.filter(
        (name): name is string =>
          typeof name === 'string' && Object.hasOwn(properties, name)
      )
    : [];
}

/** Whether a form field can show the value without changing it. */
function isFit(schema: IJsonObject, value: JsonValue | undefined): boolean {
  if (value === undefined) {
    return true;
  }
  const types = [schema['type']].flat();
  if (value === null) {
    return types.includes('null');
  }
  if (Array.isArray(schema['enum'])) {
    return schema['enum'].includes(value);
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return (
      types.includes('array') &&
      isObject(items) &&
      value.every(item => isFit(items, item))
    );
  }
  if (isObject(value)) {
    const { properties } = schema;
    return (
      types.includes('object') &&
      isObject(properties) &&
      Object.keys(value).every(name => {
        const property = properties[name];
        return isObject(property) && isFit(property, value[name]);
      })
    );
  }
  if (isNumber(value)) {
    return types.includes('number') || types.includes('integer');
  }
  return (
    types.includes(typeof value as 'string' | 'boolean') ||
    (isNumeric(schema) && isNoNumber(value))
  );
}

/** Whether a value is a text that the field of a number shows as it is, to be corrected; one of digits would become a number. */
function isNoNumber(value: JsonValue): boolean {
  return typeof value === 'string' && value !== '' && numberOf(value) === value;
}

class SchemaReader {
  constructor(
    private readonly _root: IJsonObject,
    private readonly _trans: TranslationBundle
  ) {}

  /** Copy the parts of a schema that a form needs; `null` if a form cannot edit it. */
  read(source: JsonValue, depth: number): IJsonObject | null {
    this._nodes++;
    const schema = this._resolve(source);
    if (!schema || depth > MAX_DEPTH || this._nodes > MAX_NODES) {
      return null;
    }
    const kind = this._kind(schema);
    if (!kind) {
      return null;
    }
    const copy = { ...kind, ...describe(schema, this._trans) };
    const type = [kind['type']].flat()[0];
    if (type === 'array') {
      return this._readArray(schema, copy, depth);
    }
    if (type === 'object') {
      return this._readObject(schema, copy, depth);
    }
    return copy;
  }

  /** The type, and the choices, if any. */
  private _kind(schema: IJsonObject): IJsonObject | null {
    if (Array.isArray(schema['enum'])) {
      return choices(schema['enum'], schema['enumNames']);
    }
    const types = [schema['type'] ?? []].flat();
    const names = types.filter(type => type !== 'null');
    if (names.length !== 1 || typeof names[0] !== 'string') {
      return null;
    }
    const isKnown = [...SCALARS, 'array', 'object'].includes(names[0]);
    const type = types.length > 1 ? [names[0], 'null'] : names[0];
    return isKnown ? { type } : null;
  }

  private _readArray(
    schema: IJsonObject,
    copy: IJsonObject,
    depth: number
  ): IJsonObject | null {
    const items = isObject(schema['items'])
      ? this.read(schema['items'], depth + 1)
      : null;
    return items && { ...copy, items };
  }

  private _readObject(
    schema: IJsonObject,
    copy: IJsonObject,
    depth: number
  ): IJsonObject | null {
    const sources = schema['properties'];
    if (!isObject(sources) || Object.keys(sources).length === 0) {
      return null;
    }
    const properties: IJsonObject = {};
    for (const name of Object.keys(sources)) {
      const property = this.read(sources[name], depth + 1);
      if (!property) {
        return null;
      }
      properties[name] = { ...property, title: label(name) };
    }
    const required = requiredNames(schema, properties);
    return { ...copy, properties, required };
  }

  /** Resolve references within the schema, and replace `anyOf: [X, null]` by X. */
  private _resolve(source: JsonValue): IJsonObject | null {
    let schema = source;
    for (let steps = 0; isObject(schema) && steps < 10; steps++) {
      const options: JsonValue = schema['anyOf'] ?? schema['oneOf'] ?? null;
      if (typeof schema['$ref'] === 'string') {
        const { $ref, ...rest } = schema;
        const target = this._lookUp($ref as string);
        schema = isObject(target) ? { ...target, ...rest } : null;
      } else if (Array.isArray(options)) {
        schema = withChoices(schema, options) ?? withoutNull(schema, options);
      } else {
        return schema;
      }
    }
    return null;
  }

  /** A reference within this schema; others are never followed. */
  private _lookUp(reference: string): JsonValue {
    const path = /^#\/((?:[^/]+\/)*[^/]+)$/.exec(reference)?.[1];
    let value: JsonValue = path ? this._root : null;
    for (const part of path?.split('/') ?? []) {
      const name = part.replace(/~1/g, '/').replace(/~0/g, '~');
      value =
        isObject(value) && Object.hasOwn(value, name) ? value[name] : null;
    }
    return value;
  }

  private _nodes = 0;
}

function isNull(option: JsonValue): boolean {
  return isObject(option) && option['type'] === 'null';
}

/** `oneOf: [{const, title}, …]` as values with their names; `null` if it is anything else. */
function withChoices(
  schema: IJsonObject,
  options: JsonValue[]
): IJsonObject | null {
  const found = options.filter(option => !isNull(option)).filter(isObject);
  if (found.length === 0 || !found.every(option => 'const' in option)) {
    return null;
  }
  const rest = { ...schema };
  delete rest['anyOf'];
  delete rest['oneOf'];
  return {
    ...rest,
    enum: found.map(option => option['const']),
    enumNames: found.map(option => option['title'] ?? null)
  };
}

/** `anyOf: [X, null]` as X that may be null; `null` for any other choice of schemas. */
function withoutNull(
  schema: IJsonObject,
  options: JsonValue[]
): IJsonObject | null {
  const others = options.filter(option => !isNull(option));
  const [only] = others;
  if (others.length !== 1 || !isObject(only)) {
    return null;
  }
  const rest = { ...schema };
  delete rest['anyOf'];
  delete rest['oneOf'];
  const merged: IJsonObject = { ...only, ...rest };
  const { type } = only;
  if (options.length > 1 && typeof type === 'string') {
    merged['type'] = [type, 'null'];
  }
  return merged;
}

/** The values that can be chosen, with the server's names for them, if any. */
function choices(values: JsonValue[], names?: JsonValue): IJsonObject | null {
  const types = new Set(values.map(value => typeof value));
  const [type] = types;
  const isPlain =
    types.size === 1 &&
    (type === 'string' || type === 'number') &&
    values.length <= MAX_CHOICES;
  if (!isPlain) {
    return null;
  }
  const given = Array.isArray(names) ? names : [];
  if (given.length !== values.length) {
    return { type, enum: values };
  }
  const titles = values.map((value, index) => {
    const title = given[index];
    return typeof title === 'string' ? title : String(value);
  });
  return { type, enum: values, titles };
}

/** A description that also names the default and the limits that a form shows. */
function describe(schema: IJsonObject, trans: TranslationBundle): IJsonObject {
  const copy: IJsonObject = {};
  for (const keyword of Object.keys(KEPT)) {
    if (typeof schema[keyword] === KEPT[keyword]) {
      copy[keyword] = schema[keyword];
    }
  }
  const parts: string[] = [];
  if (typeof schema['description'] === 'string') {
    parts.push(label(schema['description'], 300));
  }
  const preset = schema['default'];
  if (preset !== undefined && !(preset instanceof ExactNumber)) {
    parts.push(trans.__('(default: %1)', label(stringify(preset), 60)));
  }
  if (parts.length > 0) {
    copy['description'] = parts.join(' ');
  }
  return copy;
}
