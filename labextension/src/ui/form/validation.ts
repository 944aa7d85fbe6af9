/**
 * Checks edited values against the schema of their form, and says in plain words what is wrong with one.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyJSONObject } from '@lumino/coreutils';
import type { RJSFSchema, RJSFValidationError } from '@rjsf/utils';
import { customizeValidator } from '@rjsf/validator-ajv8';

import { isObject, namesOf, stringify } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { label } from '../text/visibleText';
import {
  toFormData,
  toFormSchema,
  toValidated,
  withFields
} from './formSchema';

/** The number of wrong values of which each is named. */
const MAX_NAMED = 5;

const ajv = customizeValidator<ReadonlyJSONObject>();

/** Checks the numbers in the texts of fields. */
export const validator: typeof ajv = Object.create(ajv, {
  validateFormData: {
    value: (data: IJsonObject, schema: IJsonObject, ...rest: []) =>
      ajv.validateFormData(
        toValidated(data, schema) as ReadonlyJSONObject,
        schema as RJSFSchema,
        ...rest
      )
  }
});

/** The number of fields whose values a form with this schema shows as wrong. */
export function countWrong(values: IJsonObject, schema: IJsonObject): number {
  const data = toFormData(withFields(values, schema), schema);
  const { errors } = validator.validateFormData(
    data as ReadonlyJSONObject,
    schema as RJSFSchema
  );
  return new Set(errors.map(({ property }) => property)).size;
}

/**
 * What is wrong with values that have no fields: a line for each of the first ones, with its name.
 *
 * The schema is the one of a form for any values, which is never stricter than the tool's but for `null`: a value that may
 * be `null` somewhere in the tool's schema is not wrong because of that.
 */
export function wrongValues(
  values: IJsonObject,
  source: IJsonObject,
  trans: TranslationBundle,
  isChecked: (name: string) => boolean = () => true
): string[] {
  const form = toFormSchema(source, {});
  if (!form) {
    return [];
  }
  const { schema } = form;
  const { errors } = ajv.validateFormData(
    toValidated(withFields(values, schema), null) as ReadonlyJSONObject,
    schema as RJSFSchema
  );
  const found = new Map<string, string>();
  for (const error of errors) {
    const path = (error.property ?? '').replace(/^\./, '');
    const name = namesOf(schema['properties'] as IJsonObject).find(
      each => path === each || path.startsWith(`${each}.`)
    );
    if (name !== undefined && isChecked(name)) {
      const isNull = valueAt(values, path) === null;
      const message = inWords(error, trans).message ?? '';
      if (!(isNull && mayBeNull(source, name)) && !found.has(path)) {
        found.set(path, trans.__('“%1”: %2', label(path), message));
      }
    }
  }
  return [...found.values()].slice(0, MAX_NAMED);
}

/** The value at a path of names and indexes, which dots separate. */
function valueAt(values: JsonValue, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = values;
  for (const part of path.split('.')) {
    value = Array.isArray(value)
      ? value[Number(part)]
      : isObject(value)
        ? value[part]
        : undefined;
  }
  return value;
}

/** Whether a tool's schema may accept `null` for a value, or for a part of it. */
function mayBeNull({ properties }: IJsonObject, name: string): boolean {
  const property = isObject(properties) ? properties[name] : null;
  return /null|\$ref/.test(stringify(property ?? null));
}

/** The validator's message about a value, in plain words. */
export function inWords(
  error: RJSFValidationError,
  trans: TranslationBundle
): RJSFValidationError {
  const limit = String((error.params as { limit?: unknown }).limit ?? '');
  const type = String((error.params as { type?: unknown }).type ?? '');
  const texts: Partial<Record<string, string>> = {
    required: trans.__('Required'),
    minimum: trans.__('Must be %1 or more', limit),
    maximum: trans.__('Must be %1 or less', limit),
    exclusiveMinimum: trans.__('Must be more than %1', limit),
    exclusiveMaximum: trans.__('Must be less than %1', limit),
    minLength: trans._n(
      'Too short: at least %1 character',
      'Too short: at least %1 characters',
      Number(limit)
    ),
    maxLength: trans._n(
      'Too long: at most %1 character',
      'Too long: at most %1 characters',
      Number(limit)
    ),
    minItems: trans.__('Too few: at least %1', limit),
    maxItems: trans.__('Too many: at most %1', limit),
    enum: trans.__('Not one of the possible values'),
    type: {
      integer: trans.__('Not a whole number'),
      number: trans.__('Not a number'),
      string: trans.__('Not a text'),
      boolean: trans.__('Not true or false'),
      array: trans.__('Not a list'),
      object: trans.__('Not an object')
    }[type.split(',')[0]]
  };
  const message = texts[error.name ?? ''];
  return message === undefined ? error : { ...error, message };
}
