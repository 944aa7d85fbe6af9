/**
 * The characters in a call's names and values that, according to the server, are not what they look like.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { useTrans } from '../context';
import type { ILookAlike } from '../../api/protocol';
import { VisibleText } from '../components/VisibleText';

export interface ILookAlikesProps {
  found: readonly ILookAlike[] | undefined;
}

export function LookAlikes({ found }: ILookAlikesProps): JSX.Element | null {
  const trans = useTrans();
  if (!found || found.length === 0) {
    return null;
  }
  return (
    <div className="jp-AgentBox-warning jp-AgentBox-lookAlikes" role="note">
      {trans.__('Possible look-alike characters:')}
      <ul>
        {found.map(one => (
          <li key={one.of + one.code}>
            <VisibleText text={describe(one, trans)} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function describe(one: ILookAlike, trans: TranslationBundle): string {
  const letter = `${one.code} ${one.name}`;
  const where = whose(one.of, trans);
  return one.like
    ? trans.__('%1: %2 looks like “%3”', where, letter, one.like)
    : trans.__('%1: %2 belongs to another script', where, letter);
}

function whose(of: string, trans: TranslationBundle): string {
  switch (of) {
    case 'server':
      return trans.__('Server');
    case 'tool':
      return trans.__('Tool');
    case 'value':
      return trans.__('Value');
    default:
      return trans.__('Argument');
  }
}
