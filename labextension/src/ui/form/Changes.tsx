/**
 * A person's changes to the arguments of a call: before and after, one argument per line.
 */
import React from 'react';

import { useTrans } from '../context';
import { stringify } from '../../api/json';
import type { IJsonObject } from '../../api/json';
import { VisibleText } from '../components/VisibleText';
import { isSecret, MASK, masked } from '../text/secretValues';
import { label } from '../text/visibleText';

/** The number of characters of a value that are shown. */
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
  const value = (of: IJsonObject, name: string): JSX.Element =>
    Object.hasOwn(of, name) ? (
      <VisibleText
        text={
          isSecret(name, of[name])
            ? MASK
            : label(stringify(masked(name, of[name]).value), MAX_VALUE)
        }
      />
    ) : (
      <i>{trans.__('not set')}</i>
    );
  return (
    <dl className="jp-AgentBox-changes" aria-label={trans.__('Changed')}>
      {names.map(name => (
        <div key={name}>
          <dt>
            <VisibleText text={label(name)} />
          </dt>
          <dd>
            <del>{value(before, name)}</del> → <ins>{value(after, name)}</ins>
          </dd>
        </div>
      ))}
    </dl>
  );
}
