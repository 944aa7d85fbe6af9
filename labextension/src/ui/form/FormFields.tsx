/**
 * The fields of a form for values with a schema.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { FormComponent } from '@jupyterlab/ui-components';
import type { ReadonlyJSONObject } from '@lumino/coreutils';
import type { ErrorSchema, RJSFSchema, RJSFValidationError } from '@rjsf/utils';
import { customizeValidator } from '@rjsf/validator-ajv8';
import React from 'react';

import { useTrans, useTranslator } from '../context';
import type { IJsonObject } from '../../api/json';
import { label } from '../text/visibleText';
import type { IArgumentError } from '../card/useSending';
import type { IDraft } from './draft';
import {
  fromFormData,
  toFormData,
  toFormSchema,
  toUiSchema,
  toValidated,
  withFields,
  withOthers
} from './formSchema';
import { FORM_FIELDS, FORM_WIDGETS } from './formWidgets';

export interface IFormFieldsProps {
  /** The schema, as sent by a server. */
  source: IJsonObject;
  draft: IDraft;
  /** The server's objection to one of the values. */
  error: IArgumentError | null;
  onChange: (draft: IDraft) => void;
}

const ajv = customizeValidator<ReadonlyJSONObject>();

/** Checks the numbers in the texts of fields. */
const validator: typeof ajv = Object.create(ajv, {
  validateFormData: {
    value: (data: IJsonObject, schema: IJsonObject, ...rest: []) =>
      ajv.validateFormData(
        toValidated(data, schema) as ReadonlyJSONObject,
        schema as RJSFSchema,
        ...rest
      )
  }
});

/** A field for each value that a form can edit, and the names of the others. */
export function FormFields(props: IFormFieldsProps): JSX.Element | null {
  const trans = useTrans();
  const translator = useTranslator();
  const { source, draft, error } = props;
  const prefix = React.useId();
  // The widgets follow the values that the editing began with, or a field would change under the typing hand.
  const form = React.useMemo(
    () => toFormSchema(source, draft.start),
    [source, draft.start]
  );
  const ui = React.useMemo(
    () => form && toUiSchema(form.schema, draft.start),
    [form, draft.start]
  );
  if (!form || !ui) {
    return null;
  }
  return (
    <>
      <FormComponent
        schema={form.schema as RJSFSchema}
        uiSchema={ui}
        idPrefix={`jp-AgentBox-${prefix}`}
        tagName="div"
        validator={validator}
        transformErrors={errors => errors.map(error => inWords(error, trans))}
        fields={FORM_FIELDS}
        widgets={FORM_WIDGETS}
        formData={
          toFormData(
            withFields(draft.values, form.schema),
            form.schema
          ) as ReadonlyJSONObject
        }
        extraErrors={toErrorSchema(error, form.schema)}
        extraErrorsBlockSubmit={false}
        experimental_defaultFormStateBehavior={{
          emptyObjectFields: 'skipDefaults',
          arrayMinItems: { populate: 'never' },
          allOf: 'skipDefaults'
        }}
        liveValidate
        noHtml5Validate
        compact
        showErrorList={false}
        translator={translator}
        onChange={event => {
          const edited = fromFormData(
            event.formData as IJsonObject,
            form.schema,
            draft.values
          ) as IJsonObject;
          const values = withOthers(edited, draft.values, form.schema);
          props.onChange({ ...draft, values, problem: null });
        }}
      />
      {form.jsonOnly.length > 0 ? (
        <p className="jp-AgentBox-note">
          {trans.__(
            'Editable as JSON only: %1',
            form.jsonOnly.map(name => label(name)).join(', ')
          )}
        </p>
      ) : null}
    </>
  );
}

/** The validator's message about a field, in plain words. */
function inWords(
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

/** The server's objection at its field. */
function toErrorSchema(
  error: IArgumentError | null,
  schema: IJsonObject
): ErrorSchema | undefined {
  const properties = schema['properties'];
  const name = error?.parameter;
  return error &&
    name &&
    properties &&
    Object.hasOwn(properties as object, name)
    ? ({ [name]: { __errors: [error.message] } } as ErrorSchema)
    : undefined;
}
