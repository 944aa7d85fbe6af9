/**
 * Hides what decides a request while the server cannot be asked.
 */
import React from 'react';

import { describeLoss } from '../text/connection';
import { qualifiedName } from '../../api/protocol';
import { label } from '../text/visibleText';
import type { ICardContext } from './RequestCard';
import { useSignal } from '../hooks/useSignal';

export interface IWhileConnectedProps {
  requestId: string;
  context: Pick<ICardContext, 'model' | 'trans'>;
  children: React.ReactNode;
}

/** Keeps the children, with what was typed in them, and says in their place what to do. */
export function WhileConnected(props: IWhileConnectedProps): JSX.Element {
  const { requestId, context, children } = props;
  const { model, trans } = context;
  useSignal(model.changed, id => id === null || id === requestId);
  const { approval } = model.get(requestId);
  const loss =
    approval?.status === 'pending'
      ? describeLoss(model.connection, trans)
      : null;
  return (
    <>
      <div hidden={loss !== null}>{children}</div>
      {approval && loss ? (
        <div className="jp-AgentBox-card jp-mod-neutral">
          <span className="jp-AgentBox-name">
            {label(qualifiedName(approval.call))}
          </span>
          <p className="jp-AgentBox-note" role="status">
            {loss}
          </p>
        </div>
      ) : null}
    </>
  );
}
