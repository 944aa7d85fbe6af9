/**
 * Checks the values of a form against its schema, and says in plain words what is wrong with a field.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyJSONObject } from '@lumino/coreutils';
import type { RJSFSchema, RJSFValidationError } from '@rjsf/utils';
import { customizeValidator } from '@rjsf/validator-ajv8';

import type { IJsonObject } from '../../api/json';
import { toFormData, toValidated, withFields } from './formSchema';

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

/** The validator's message about a field, in plain words. */
export function inWords(
  error: RJSFValidationError,
  trans: TranslationBundle
): RJSFValidationError {
  const limit = String((error.params as { limit?: unknown }).limit ?? '');
  const type = String((error.params as { type?: unknown }).type ?? '');
  const texts: Record<string, string> = {
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
    ...(type.startsWith('integer') && { type: trans.__('Not a whole number') }),
    ...(type.startsWith('number') && { type: trans.__('Not a number') })
  };
  const message = texts[error.name ?? ''];
  return message === undefined ? error : { ...error, message };
}
