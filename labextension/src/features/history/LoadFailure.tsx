/**
 * Replaces calls that could not be loaded.
 */
import React from 'react';

import { LinkButton } from '../../ui/components/VisibleText';
import { useTrans } from '../../ui/context';

export interface ILoadFailureProps {
  onRetry: () => void;
}

export function LoadFailure({ onRetry }: ILoadFailureProps): JSX.Element {
  const trans = useTrans();
  return (
    <p className="jp-AgentBox-historyFailure" role="alert">
      {trans.__('The history could not be loaded.')}{' '}
      <LinkButton label={trans.__('Try again')} onClick={onRetry} />
    </p>
  );
}
