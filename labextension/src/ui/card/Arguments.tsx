/**
 * Shows the arguments of a call exactly as they would be sent.
 */
import React from 'react';

import { useTrans } from '../context';
import { isObject, namesOf } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { hasHidden, label } from '../text/visibleText';
import { CodeView } from '../code/CodeView';
import type { ICodeViewProps } from '../code/CodeView';
import { CODE } from '../code/findings';
import { Difference } from '../code/Difference';
import { useHidden } from '../components/ShowHidden';
import { useUnseenReport } from '../components/Unseen';
import { LinkButton, VisibleText } from '../components/VisibleText';
import { replacements, TRUSTED } from './replacements';
import type { IReplacement } from './replacements';
import { Value } from './Value';

/** The number of arguments that are shown at first. */
const MAX_SHOWN = 100;

export interface IArgumentsProps {
  values: IJsonObject;
  /** The tool's JSON Schema of its arguments. */
  schema?: JsonValue;
  /** The analysis of the argument that is Python, if there is one. */
  python?: Omit<ICodeViewProps, 'code' | 'name'> | null;
}

/** Names and values, one below the other. */
export function Arguments(props: IArgumentsProps): JSX.Element {
  const trans = useTrans();
  const { values, schema, python } = props;
  const [isWhole, setWhole] = React.useState(false);
  const names = namesOf(values);
  const shown = isWhole ? names : names.slice(0, MAX_SHOWN);
  useUnseenReport(null, names.length - shown.length);
  const isHidden = React.useMemo(() => hasHiddenText(values), [values]);
  const replaced = React.useMemo(() => replacements(values), [values]);
  if (names.length === 0) {
    return (
      <p className="jp-AgentBox-noArguments">{trans.__('No arguments')}</p>
    );
  }
  const [trusted, others] = [
    replaced.filter(({ old }) => old === TRUSTED),
    replaced.filter(({ old }) => old !== TRUSTED)
  ];
  return (
    <>
      {isHidden ? <HiddenWarning /> : null}
      <dl className="jp-AgentBox-arguments" aria-label={trans.__('Arguments')}>
        {shown.map(name => (
          <div
            key={name}
            className={python && name === CODE ? 'jp-mod-code' : ''}
          >
            <dt>
              <VisibleText text={name} />
            </dt>
            <dd>
              {python && name === CODE ? (
                <CodeView
                  {...python}
                  name={trans.__('Python code')}
                  code={String(values[name])}
                />
              ) : name === TRUSTED && trusted.length > 0 ? (
                <Replacement
                  {...trusted[0]}
                  caption={trans.__('What has changed since you trusted it')}
                />
              ) : (
                <Value
                  name={name}
                  value={values[name]}
                  schema={propertyOf(schema, name)}
                />
              )}
            </dd>
          </div>
        ))}
      </dl>
      {shown.length < names.length ? (
        <LinkButton
          label={trans._n(
            'Only the first argument is shown. Show all %2',
            'Only the first %1 arguments are shown. Show all %2',
            shown.length,
            names.length
          )}
          onClick={() => {
            setWhole(true);
          }}
        />
      ) : null}
      {others.map(replacement => (
        <Replacement
          key={replacement.name}
          {...replacement}
          caption={trans.__('What %1 changes', label(replacement.name, 60))}
        />
      ))}
    </>
  );
}

/** What a value changes where it replaces another one; secrets are shown only on request. */
function Replacement(props: IReplacement & { caption: string }): JSX.Element {
  const { caption, before, after, whole, hidden } = props;
  const { root, isShown, button } = useHidden();
  const texts = isShown ? whole : { before, after };
  return (
    <div ref={root} className="jp-AgentBox-value" tabIndex={-1}>
      <Difference {...texts} caption={caption} />
      {button(caption, hidden)}
    </div>
  );
}

/** The schema of a property. */
function propertyOf(
  schema: JsonValue | undefined,
  name: string
): JsonValue | undefined {
  const properties = isObject(schema) ? schema['properties'] : undefined;
  return isObject(properties) && Object.hasOwn(properties, name)
    ? properties[name]
    : undefined;
}

/** Whether any name or text in the value contains an invisible character. */
function hasHiddenText(value: JsonValue): boolean {
  if (typeof value === 'string') {
    return hasHidden(value);
  }
  if (Array.isArray(value)) {
    return value.some(hasHiddenText);
  }
  return (
    isObject(value) &&
    Object.keys(value).some(
      name => hasHidden(name) || hasHiddenText(value[name])
    )
  );
}

function HiddenWarning(): JSX.Element {
  const trans = useTrans();
  return (
    <p className="jp-AgentBox-warning" role="note">
      {trans.__(
        'Some text contains invisible or direction-changing characters, shown as escapes:'
      )}{' '}
      <span className="jp-AgentBox-escape">\u202e</span>
    </p>
  );
}
