/**
 * The value of an argument: in a line, as a table, as code, as an image, or as a text; it is masked, or a part of it, where
 * its name sounds like a secret.
 */
import React from 'react';

import { useTrans } from '../context';
import { ExactNumber, isObject, namesOf, stringify } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { LinkButton, TextBlock, VisibleText } from '../components/VisibleText';
import { useHidden } from '../components/ShowHidden';
import { useUnseenReport } from '../components/Unseen';
import { ValueTools } from '../components/ValueTools';
import { CodeView } from '../code/CodeView';
import { useSeenPart } from '../hooks/useSeenPart';
import { localeOf } from '../text/language';
import { isSecret, MASK, masked } from '../text/secretValues';
import { isColored, JSON_TYPE, kindOf } from '../text/valueKind';
import { Picture } from './Picture';

/** The type of a text that is in no language. */
const PLAIN_TYPE = 'text/plain';

/** The maximum number of characters of a value that is shown beside its name. */
const MAX_INLINE = 72;

/** The number of rows of a table that need no scrolling, as long as each takes one line. */
const SHORT_ROWS = 10;

/** The number of columns that fit beside each other. */
const FEW_COLUMNS = 4;

/** The maximum number of rows and columns of a table. */
const MAX_ROWS = 100;
const MAX_COLUMNS = 8;

export interface IValueProps {
  name: string;
  value: JsonValue;
  /** Its part of the tool's JSON Schema. */
  schema?: JsonValue;
}

/** A value, of which what is probably a secret is shown only on request. */
export function Value({ name, value, schema }: IValueProps): JSX.Element {
  const { root, isShown, button } = useHidden();
  const { value: shown, hidden } = React.useMemo(
    () => (isShown ? { value, hidden: 0 } : masked(name, value)),
    [isShown, name, value]
  );
  return (
    <div ref={root} className="jp-AgentBox-value" tabIndex={-1}>
      {hidden > 0 && isSecret(name, value) ? (
        <span aria-hidden="true">{MASK}</span>
      ) : (
        <Shown name={name} value={shown} whole={value} schema={schema} />
      )}{' '}
      {button(name, hidden)}
    </div>
  );
}

interface IShownProps extends IValueProps {
  /** What is copied; by default, what is shown. */
  whole?: JsonValue;
}

function Shown({ name, value, whole, schema }: IShownProps): JSX.Element {
  if (typeof value === 'string') {
    return isShort(value) ? (
      <code className="jp-mod-string">
        “<VisibleText text={value} />”
      </code>
    ) : (
      <LongText
        text={value}
        whole={typeof whole === 'string' ? whole : value}
        name={name}
        schema={schema}
      />
    );
  }
  if (isTable(value)) {
    return (
      <>
        <Table name={name} rows={value} />
        <ValueTools
          text={stringify(whole ?? value, 2)}
          shown={stringify(value, 2)}
          name={name}
          mimeType={JSON_TYPE}
        />
      </>
    );
  }
  const line = stringify(value);
  const isNested = !isScalar(value);
  if (!isNested || line.length <= MAX_INLINE) {
    return (
      <code className={isNested ? 'jp-mod-nested' : 'jp-mod-scalar'}>
        <VisibleText text={line} />
      </code>
    );
  }
  return <Nested name={name} value={value} whole={whole ?? value} />;
}

interface ILongTextProps {
  name: string;
  text: string;
  /** What is copied. */
  whole: string;
  schema?: JsonValue;
}

/** A text that needs its own block, rendered by its kind if that is known. */
function LongText({ name, text, whole, schema }: ILongTextProps): JSX.Element {
  const kind = React.useMemo(
    () => kindOf(name, schema, text),
    [name, schema, text]
  );
  switch (kind.kind) {
    case 'image':
      return (
        <>
          <Picture image={kind.image} />
          <TextBlock text={text} name={name} />
          <ValueTools
            text={whole}
            shown={text}
            name={name}
            mimeType={PLAIN_TYPE}
          />
        </>
      );
    case 'code':
      return (
        <>
          <CodeView code={text} name={name} mimeType={kind.mimeType} />
          <ValueTools
            text={whole}
            shown={text}
            name={name}
            mimeType={kind.mimeType}
          />
        </>
      );
    case 'text':
      return (
        <>
          <TextBlock text={text} name={name} />
          <ValueTools
            text={whole}
            shown={text}
            name={name}
            mimeType={PLAIN_TYPE}
          />
        </>
      );
  }
}

interface INestedProps {
  name: string;
  value: JsonValue;
  /** What is copied. */
  whole: JsonValue;
}

/** An object or a list, as the JSON that would be sent. */
function Nested({ name, value, whole }: INestedProps): JSX.Element {
  const text = React.useMemo(() => stringify(value, 2), [value]);
  return (
    <>
      {isColored(text) ? (
        <CodeView code={text} name={name} mimeType={JSON_TYPE} />
      ) : (
        <TextBlock text={text} name={name} />
      )}
      <ValueTools
        text={stringify(whole, 2)}
        shown={text}
        name={name}
        mimeType={JSON_TYPE}
      />
    </>
  );
}

interface ITableProps {
  name: string;
  rows: readonly IJsonObject[];
}

/** A table that scrolls if it is long, tells its length, and can be expanded to its full height. */
function Table({ name, rows }: ITableProps): JSX.Element {
  const trans = useTrans();
  const [first] = rows;
  const columns = namesOf(first);
  const [isOpen, setOpen] = React.useState(false);
  const box = React.useRef<HTMLDivElement>(null);
  const text = React.useMemo(() => stringify([...rows]), [rows]);
  const [seen, onScroll] = useSeenPart(box, { text, isFilled: true });
  useUnseenReport(name, Math.ceil((1 - seen) * text.length));
  return (
    <>
      <div
        ref={box}
        className={[
          'jp-AgentBox-tableBox',
          isOpen ? 'jp-mod-tall' : '',
          columns.length > FEW_COLUMNS ? 'jp-mod-wide' : ''
        ].join(' ')}
        role="group"
        aria-label={name}
        tabIndex={0}
        onScroll={onScroll}
      >
        <table>
          <thead>
            <tr>
              {columns.map(column => (
                <th key={column} scope="col">
                  <VisibleText text={column} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                {columns.map(column => (
                  <td key={column}>
                    <Shown name={column} value={row[column]} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > SHORT_ROWS ? (
        <div className="jp-AgentBox-blockFoot">
          <span>
            {trans._n(
              '%2 row',
              '%2 rows',
              rows.length,
              rows.length.toLocaleString(localeOf(trans))
            )}
          </span>
          <LinkButton
            label={isOpen ? trans.__('Show less') : trans.__('Show all rows')}
            isPressed={isOpen}
            onClick={() => {
              setOpen(!isOpen);
            }}
          />
        </div>
      ) : null}
    </>
  );
}

/** Whether it is a list of objects that have the same few names, and short values under them. */
function isTable(value: JsonValue): value is IJsonObject[] {
  if (!Array.isArray(value) || value.length < 2 || value.length > MAX_ROWS) {
    return false;
  }
  const [first] = value;
  const names = isObject(first) ? namesOf(first) : [];
  return (
    names.length > 0 &&
    names.length <= MAX_COLUMNS &&
    value.every(
      row =>
        isObject(row) &&
        namesOf(row).length === names.length &&
        names.every(
          name =>
            Object.hasOwn(row, name) &&
            isScalar(row[name]) &&
            isShort(String(row[name]))
        )
    )
  );
}

function isScalar(value: JsonValue): boolean {
  return typeof value !== 'object' || value === null || isExact(value);
}

function isExact(value: unknown): boolean {
  return value instanceof ExactNumber;
}

function isShort(text: string): boolean {
  return text.length <= MAX_INLINE && !text.includes('\n');
}
