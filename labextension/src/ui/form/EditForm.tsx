/**
 * Edits the arguments of a call, in a form or as JSON.
 */
import { FormComponent } from '@jupyterlab/ui-components';
import type { ReadonlyJSONObject } from '@lumino/coreutils';
import type { ErrorSchema, RJSFSchema } from '@rjsf/utils';
import { customizeValidator } from '@rjsf/validator-ajv8';
import React from 'react';

import { useTrans, useTranslator } from '../context';
import { changedNames, draftArguments, switchMode } from './draft';
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
import type { IJsonObject } from '../../api/json';
import type { IApproval } from '../../api/protocol';
import { useInView } from '../hooks/useInView';
import { label } from '../text/visibleText';
import { Changes } from './Changes';
import { EditFooter } from './EditFooter';
import { CardGuard } from '../guarded/GuardedCard';
import { FORM_FIELDS, FORM_WIDGETS } from './formWidgets';
import type { IArgumentError } from '../card/useSending';

export interface IEditFormProps {
  /** Whether a field may take the focus when it appears; not if the form comes back by itself. */
  isFocused: boolean;
  approval: IApproval;
  draft: IDraft;
  error: IArgumentError | null;
  isBusy: boolean;
  describedBy: string;
  onChange: (draft: IDraft) => void;
  onAllow: (values: IJsonObject) => void;
  onCancel: () => void;
}

const ajv = customizeValidator<ReadonlyJSONObject>();

/** Checks the numbers that the texts of fields stand for. */
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

/** Nothing that was typed is lost, whatever is wrong with it. */
export function EditForm(props: IEditFormProps): JSX.Element {
  const trans = useTrans();
  const { approval, draft } = props;
  const read = draftArguments(draft, trans);
  const changed = read.values
    ? changedNames(approval.call.arguments, read.values)
    : [];
  const { confirm } = React.useContext(CardGuard);
  const root = React.useRef<HTMLDivElement>(null);
  const isFocused = React.useRef(props.isFocused);
  React.useEffect(() => {
    if (isFocused.current) {
      root.current
        ?.querySelector<HTMLElement>('input, select, textarea')
        ?.focus();
    }
  }, []);
  useInView(root, props.isFocused);

  return (
    <div
      ref={root}
      className="jp-AgentBox-form"
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          props.onCancel();
        } else if (isSending(event)) {
          event.preventDefault();
          if (read.values && !props.isBusy && confirm()) {
            props.onAllow(read.values);
          }
        }
      }}
    >
      <Modes {...props} />
      {draft.mode === 'form' ? <Fields {...props} /> : <JsonField {...props} />}
      <EditFooter
        {...props}
        errors={[draft.problem, read.error, props.error?.message]}
        values={read.values}
      >
        <Changes
          names={changed}
          before={approval.call.arguments}
          after={read.values ?? {}}
        />
      </EditFooter>
    </div>
  );
}

/** Whether a person, and no held key, sends the form from within a field. */
function isSending({ nativeEvent: event }: React.KeyboardEvent): boolean {
  const isEnter = event.key === 'Enter' && (event.ctrlKey || event.metaKey);
  return isEnter && event.isTrusted && !event.repeat && !event.isComposing;
}

function Modes({ approval, draft, onChange }: IEditFormProps): JSX.Element {
  const trans = useTrans();
  const schema = approval.tool.input_schema;
  const modes: [IDraft['mode'], string][] = [
    ['form', trans.__('Form')],
    ['json', trans.__('JSON')]
  ];
  return (
    <div
      className="jp-AgentBox-modes"
      role="group"
      aria-label={trans.__('Edit the arguments as')}
    >
      {modes.map(([mode, name]) => (
        <button
          key={mode}
          type="button"
          aria-pressed={draft.mode === mode}
          onClick={() => {
            onChange(switchMode(draft, mode, schema, trans));
          }}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

function Fields(props: IEditFormProps): JSX.Element | null {
  const trans = useTrans();
  const translator = useTranslator();
  const { approval, draft, error } = props;
  const prefix = React.useId();
  const source = approval.tool.input_schema;
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

function JsonField(props: IEditFormProps): JSX.Element {
  const trans = useTrans();
  const { draft } = props;
  const field = React.useRef<HTMLTextAreaElement>(null);
  const rows = Math.min(20, Math.max(5, draft.text.split('\n').length + 1));
  const isFocused = React.useRef(props.isFocused);
  React.useEffect(() => {
    if (isFocused.current) {
      field.current?.focus();
    }
  }, []);
  return (
    <textarea
      ref={field}
      className="jp-AgentBox-field jp-mod-code"
      aria-label={trans.__('Arguments as JSON')}
      rows={rows}
      spellCheck={false}
      autoComplete="off"
      value={draft.text}
      onChange={event => {
        props.onChange({ ...draft, text: event.target.value, problem: null });
      }}
    />
  );
}

/** The server's complaint at the field that it is about. */
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
