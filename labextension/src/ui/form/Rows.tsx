/**
 * A list of objects in a form: each is a row of fields. JupyterLab's form gives each field a line, a name and a description,
 * and so a long list thousands of pixels.
 */
import { closeIcon, moveDownIcon, moveUpIcon } from '@jupyterlab/ui-components';
import type { LabIcon } from '@jupyterlab/ui-components';
import type {
  ArrayFieldTemplateItemType,
  ArrayFieldTemplateProps,
  ObjectFieldTemplateProps,
  UiSchema
} from '@rjsf/utils';
import React from 'react';

import { isObject } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { useTrans } from '../context';

/** The maximum number of fields in a row. */
const MOST_FIELDS = 6;

/** The widgets of a form, with rows for each list of objects that fit into rows. */
export function withRows(ui: UiSchema, schema: IJsonObject): UiSchema {
  const { properties, items } = schema;
  const result: UiSchema = { ...ui };
  if (isObject(properties)) {
    for (const name of Object.keys(properties)) {
      const property = properties[name];
      if (isObject(property)) {
        result[name] = withRows(result[name] ?? {}, property);
      }
    }
  }
  if (isObject(items)) {
    const inner: UiSchema = ui.items ?? {};
    if (isFlat(items) && !hasLongText(inner)) {
      result['ui:ArrayFieldTemplate'] = Rows;
      result.items = { ...inner, 'ui:ObjectFieldTemplate': Fields };
    } else {
      result.items = withRows(inner, items);
    }
  }
  return result;
}

/** Whether a schema is that of an object with few fields of one line each. */
function isFlat({ properties }: IJsonObject): boolean {
  if (!isObject(properties)) {
    return false;
  }
  const fields = Object.values(properties);
  return fields.length <= MOST_FIELDS && fields.every(isOneField);
}

function isOneField(schema: JsonValue | undefined): boolean {
  return (
    isObject(schema) &&
    !isObject(schema['items']) &&
    !isObject(schema['properties'])
  );
}

function hasLongText(ui: UiSchema): boolean {
  return Object.values(ui).some(
    (field: UiSchema | undefined) => field?.['ui:widget'] === 'textarea'
  );
}

function Rows(props: ArrayFieldTemplateProps): JSX.Element {
  const trans = useTrans();
  const { title, schema, items } = props;
  const root = React.useRef<HTMLDivElement>(null);
  const keepFocus = (): void => {
    root.current?.focus({ preventScroll: true });
  };
  const isAdding = React.useRef(false);
  React.useEffect(() => {
    if (isAdding.current) {
      isAdding.current = false;
      const rows = root.current?.querySelectorAll('.jp-AgentBox-formRow');
      const added = rows?.[rows.length - 1];
      added?.querySelector<HTMLElement>('input, select, textarea')?.focus();
    }
  }, [items.length]);
  return (
    <div
      ref={root}
      className="jp-AgentBox-fieldRows"
      role="group"
      aria-label={title}
      tabIndex={-1}
    >
      <div className="jp-FormGroup-compactTitle">
        <div className="jp-FormGroup-fieldLabel">{title}</div>
        <div className="jp-FormGroup-description">
          {schema.description ?? ''}
        </div>
      </div>
      {items.map(item => (
        <Row key={item.key} item={item} list={title} onRemove={keepFocus} />
      ))}
      {props.canAdd ? (
        <button
          type="button"
          className="jp-AgentBox-link"
          onClick={event => {
            isAdding.current = true;
            props.onAddClick(event);
          }}
        >
          {trans.__('Add to %1', title)}
        </button>
      ) : null}
    </div>
  );
}

interface IRowProps {
  item: ArrayFieldTemplateItemType;
  /** The name of the list. */
  list: string;
  /** Keeps the focus in the list when the row has gone. */
  onRemove: () => void;
}

function Row({ item, list, onRemove }: IRowProps): JSX.Element {
  const trans = useTrans();
  const { index } = item;
  const name = trans.__('%1, %2', list, index + 1);
  const move = (to: number): void => {
    item.onReorderClick(index, to)(); // with the event, it would take the focus from the button
  };
  return (
    <div className="jp-AgentBox-formRow" role="group" aria-label={name}>
      {item.children}
      <div className="jp-AgentBox-rowActions">
        <RowButton
          icon={moveUpIcon}
          label={trans.__('Move %1 up', name)}
          isOff={!item.hasMoveUp}
          onClick={() => {
            move(index - 1);
          }}
        />
        <RowButton
          icon={moveDownIcon}
          label={trans.__('Move %1 down', name)}
          isOff={!item.hasMoveDown}
          onClick={() => {
            move(index + 1);
          }}
        />
        <RowButton
          icon={closeIcon}
          label={trans.__('Remove %1', name)}
          isOff={!item.hasRemove}
          onClick={event => {
            onRemove();
            item.onDropIndexClick(index)(event);
          }}
        />
      </div>
    </div>
  );
}

/** It keeps the focus when it is off, as when the row that it moved has become the first one. */
function RowButton(props: {
  icon: LabIcon;
  label: string;
  isOff: boolean;
  onClick: (event: React.MouseEvent) => void;
}): JSX.Element {
  return (
    <button
      type="button"
      className="jp-AgentBox-rowButton"
      title={props.label}
      aria-label={props.label}
      aria-disabled={props.isOff}
      onClick={props.isOff ? undefined : props.onClick}
    >
      <props.icon.react tag="span" width="12px" height="12px" />
    </button>
  );
}

/** The fields of a row, whose names and descriptions stand above those of the first row. */
function Fields({ properties }: ObjectFieldTemplateProps): JSX.Element {
  return (
    <div className="jp-AgentBox-rowFields">
      {properties.map(({ content }) => content)}
    </div>
  );
}
