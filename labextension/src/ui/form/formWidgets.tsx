/**
 * The fields of a form. JupyterLab's own have no name for screen readers.
 */
import { errorId } from '@rjsf/utils';
import type { EnumOptionsType, FieldProps, WidgetProps } from '@rjsf/utils';
import React from 'react';

import { label } from '../text/visibleText';

/** What all fields have in common: the name, and whether there is a problem. */
function attributes(props: WidgetProps): React.HTMLAttributes<HTMLElement> {
  const isWrong = (props.rawErrors?.length ?? 0) > 0;
  return {
    id: props.id,
    className: 'jp-AgentBox-field jp-mod-code',
    'aria-label': props.label,
    'aria-required': props.required ?? false,
    'aria-invalid': isWrong,
    'aria-describedby': isWrong ? errorId(props.id) : undefined
  };
}

/** An optional text that was emptied is not sent; a required one is sent empty. */
function emptyValue(props: WidgetProps): string | undefined {
  return props.required && props.schema.type === 'string' ? '' : undefined;
}

function TextWidget(props: WidgetProps): JSX.Element {
  const { schema, value } = props;
  const isNumber = [schema.type]
    .flat()
    .some(type => type === 'number' || type === 'integer');
  return (
    <input
      {...attributes(props)}
      type="text"
      inputMode={isNumber ? 'decimal' : undefined}
      autoComplete="off"
      spellCheck={false}
      value={String(value ?? '')}
      onChange={event => {
        props.onChange(event.target.value || emptyValue(props));
      }}
    />
  );
}

function TextareaWidget(props: WidgetProps): JSX.Element {
  return (
    <textarea
      {...attributes(props)}
      rows={6}
      autoComplete="off"
      spellCheck={false}
      value={String(props.value ?? '')}
      onChange={event => {
        props.onChange(event.target.value || emptyValue(props));
      }}
    />
  );
}

/** A choice as shown: the server's name for it and the value that would be sent, with invisible characters spelled out. */
function choiceText({ label: title, value }: EnumOptionsType): string {
  const sent = label(String(value), 300);
  return title === String(value) ? sent : `${label(title, 300)} (${sent})`;
}

/** A list for a single choice, or a checkbox for each if several can be chosen: the library has one widget for both. */
function SelectWidget(props: WidgetProps): JSX.Element {
  return props.multiple ? <Boxes {...props} /> : <Select {...props} />;
}

/** JupyterLab's form shows neither the name nor the description of a field whose value is a list. */
function Boxes(props: WidgetProps): JSX.Element {
  const { label: name, required, schema, options } = props;
  const choices = options.enumOptions ?? [];
  const chosen: unknown[] = Array.isArray(props.value) ? props.value : [];
  const toggle = (value: unknown): void => {
    const others = chosen.filter(one => one !== value);
    const next = others.length < chosen.length ? others : [...chosen, value];
    props.onChange(next.length > 0 || required ? next : undefined);
  };
  const describedBy = schema.description ? `${props.id}-says` : undefined;
  return (
    <div
      id={props.id}
      className="jp-AgentBox-boxes"
      role="group"
      aria-label={name}
      aria-describedby={describedBy}
    >
      <div className="jp-FormGroup-compactTitle">
        <div className="jp-FormGroup-fieldLabel jp-FormGroup-contentItem">
          {name}
        </div>
        {schema.description ? (
          <div id={describedBy} className="jp-FormGroup-description">
            {schema.description}
          </div>
        ) : null}
      </div>
      {choices.map((choice, position) => (
        <label key={position}>
          <input
            type="checkbox"
            checked={chosen.includes(choice.value)}
            onChange={() => {
              toggle(choice.value);
            }}
          />{' '}
          {choiceText(choice)}
        </label>
      ))}
    </div>
  );
}

function Select(props: WidgetProps): JSX.Element {
  const choices = props.options.enumOptions ?? [];
  const index = choices.findIndex(choice => choice.value === props.value);
  return (
    <select
      {...attributes(props)}
      value={index}
      onChange={event => {
        props.onChange(choices[Number(event.target.value)]?.value);
      }}
    >
      {index < 0 || !props.required ? <option value={-1} /> : null}
      {choices.map((choice, position) => (
        <option key={position} value={position}>
          {choiceText(choice)}
        </option>
      ))}
    </select>
  );
}

/** A number's field keeps the typed text: the library's own would convert it to a number, with other digits. */
function NumberField(props: FieldProps): JSX.Element {
  const { StringField } = props.registry.fields;
  return <StringField {...props} />;
}

/** The fields, by the form library's names for them. */
export const FORM_FIELDS = { NumberField };

/** The widgets, by the form library's names for them. */
export const FORM_WIDGETS = { TextWidget, TextareaWidget, SelectWidget };
