/**
 * Hides what decides a request while the server cannot be asked.
 */
import React from 'react';

import { useCardContext } from '../context';
import { describeLoss } from '../text/connection';
import { qualifiedName } from '../../api/protocol';
import { label } from '../text/visibleText';
import { useSignal } from '../hooks/useSignal';

export interface IWhileConnectedProps {
  requestId: string;
  children: React.ReactNode;
}

/** Keeps the children with what was typed in them, and shows in their place what to do. */
export function WhileConnected(props: IWhileConnectedProps): JSX.Element {
  const { requestId, children } = props;
  const { model, trans } = useCardContext();
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
