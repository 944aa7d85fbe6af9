/**
 * A person's changes to the arguments of a call: short values before and after in a line, long ones as a difference.
 */
import React from 'react';

import { useTrans } from '../context';
import { isEqual, isObject, stringify } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { DiffLines } from '../code/Difference';
import { useHidden } from '../components/ShowHidden';
import { VisibleText } from '../components/VisibleText';
import { MASK, masked } from '../text/secretValues';
import { label } from '../text/visibleText';

/** The number of characters of a value that are shown in a line. */
const MAX_VALUE = 80;

export interface IChangesProps {
  names: readonly string[];
  before: IJsonObject;
  after: IJsonObject;
}

export function Changes(props: IChangesProps): JSX.Element {
  const trans = useTrans();
  const { names, before, after } = props;
  if (names.length === 0) {
    return <p className="jp-AgentBox-changes">{trans.__('No changes')}</p>;
  }
  return (
    <dl className="jp-AgentBox-changes" aria-label={trans.__('Changed')}>
      {names.map(name => (
        <Change
          key={name}
          name={name}
          before={valueOf(before, name)}
          after={valueOf(after, name)}
        />
      ))}
    </dl>
  );
}

/** `undefined` stands for a value that is not set. */
interface IChangeProps {
  name: string;
  before: JsonValue | undefined;
  after: JsonValue | undefined;
}

/** What is probably a secret is shown only on request. */
function Change({ name, before, after }: IChangeProps): JSX.Element {
  const trans = useTrans();
  const { root, isShown, button } = useHidden();
  const values = React.useMemo(
    () => ({ name, ...seen({ name, before, after }, isShown) }),
    [name, before, after, isShown]
  );
  const texts = React.useMemo(() => textsOf(values), [values]);
  return (
    <div
      ref={root}
      className={`jp-AgentBox-value${texts ? ' jp-mod-long' : ''}`}
      tabIndex={-1}
    >
      <dt>
        <VisibleText text={label(name)} />
      </dt>
      <dd>
        {texts ? (
          <DiffLines
            {...texts}
            name={trans.__('Changes to %1', label(name, 60))}
          />
        ) : (
          <>
            <del>
              <Short value={values.before} />
            </del>{' '}
            →{' '}
            <ins>
              <Short value={values.after} />
            </ins>
          </>
        )}{' '}
        {button(name, values.hidden)}
      </dd>
    </div>
  );
}

function Short({ value }: { value: JsonValue | undefined }): JSX.Element {
  const trans = useTrans();
  return value === undefined ? (
    <i>{trans.__('not set')}</i>
  ) : (
    <VisibleText
      text={value === MASK ? MASK : label(stringify(value), MAX_VALUE)}
    />
  );
}

function valueOf(values: IJsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}

/** Both values as they are shown, and how many characters of secrets are hidden in them. */
function seen(
  { name, before, after }: IChangeProps,
  isShown: boolean
): Omit<IChangeProps, 'name'> & { hidden: number } {
  const [old, now] = [before, after].map(value =>
    isShown || value === undefined ? { value, hidden: 0 } : masked(name, value)
  );
  const hidden = old.hidden + now.hidden;
  // If nothing but secrets changed, what can be seen did not.
  return old.value !== undefined &&
    now.value !== undefined &&
    isEqual(old.value, now.value)
    ? { before: MASK, after: MASK, hidden }
    : { before: old.value, after: now.value, hidden };
}

/** What is compared line by line: texts, lists or objects, of which one does not fit into a line. */
function textsOf({
  before,
  after
}: IChangeProps): { before: string; after: string } | null {
  const isText = typeof before === 'string' && typeof after === 'string';
  if (!isText && !(hasParts(before) && hasParts(after))) {
    return null;
  }
  const written = (value: JsonValue): string =>
    typeof value === 'string' ? value : stringify(value, 2);
  return isLong(before) || isLong(after)
    ? { before: written(before), after: written(after) }
    : null;
}

function hasParts(value: JsonValue | undefined): value is JsonValue {
  return Array.isArray(value) || isObject(value);
}

function isLong(value: JsonValue): boolean {
  return typeof value === 'string'
    ? value.length > MAX_VALUE || value.includes('\n')
    : stringify(value).length > MAX_VALUE;
}
