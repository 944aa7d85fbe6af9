/**
 * The fields of a form for values with a schema.
 */
import { FormComponent } from '@jupyterlab/ui-components';
import type { ReadonlyJSONObject } from '@lumino/coreutils';
import type { ErrorSchema, RJSFSchema, UiSchema } from '@rjsf/utils';
import React from 'react';

import { useTrans, useTranslator } from '../context';
import type { IJsonObject } from '../../api/json';
import { label } from '../text/visibleText';
import type { IArgumentError } from '../card/useSending';
import type { IDraft } from './draft';
import {
  fromFormData,
  hasField,
  toFormData,
  toFormSchema,
  toUiSchema,
  withFields,
  withOthers
} from './formSchema';
import { FORM_FIELDS, FORM_WIDGETS } from './formWidgets';
import { withRows } from './Rows';
import { inWords, validator } from './validation';

export interface IFormFieldsProps {
  /** The schema, as sent by a server. */
  source: IJsonObject;
  draft: IDraft;
  /** The server's objection to one of the values. */
  error: IArgumentError | null;
  onChange: (draft: IDraft) => void;
}

/** A field for each value that a form can edit, and the names of the others. */
export function FormFields(props: IFormFieldsProps): JSX.Element | null {
  const trans = useTrans();
  const translator = useTranslator();
  const { source, draft, error } = props;
  const prefix = React.useId();
  // The widgets follow the values that the editing began with, or a field would change under the typing hand.
  const form = React.useMemo(
    () => toFormSchema(source, draft.start, trans),
    [source, draft.start, trans]
  );
  const ui = React.useMemo(
    () => form && withRows(toUiSchema(form.schema, draft.start), form.schema),
    [form, draft.start]
  );
  if (!form || !ui) {
    return null;
  }
  return (
    <>
      <FormComponent
        schema={form.schema as RJSFSchema}
        uiSchema={ui as UiSchema<ReadonlyJSONObject>}
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

/** The server's objection at its field. */
function toErrorSchema(
  error: IArgumentError | null,
  schema: IJsonObject
): ErrorSchema | undefined {
  const name = error?.parameter ?? null;
  return error && name !== null && hasField(schema, name)
    ? ({ [name]: { __errors: [error.message] } } as ErrorSchema)
    : undefined;
}
