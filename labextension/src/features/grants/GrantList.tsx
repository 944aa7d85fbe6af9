/**
 * The lasting answers that hold: what each is for, who gave it, how often it answered, and a button that takes it back.
 */
import React from 'react';

import type { IGrant } from '../../api/protocol';
import type { IGrantsModel } from '../../internalTokens';
import { useNameOf, useTrans } from '../../ui/context';
import { useSignal } from '../../ui/hooks/useSignal';
import {
  describeGrant,
  describeUses,
  describeVoid
} from '../../ui/text/grants';
import { label } from '../../ui/text/visibleText';

export interface IGrantListProps {
  grants: IGrantsModel;
}

export function GrantList({ grants }: IGrantListProps): JSX.Element {
  const trans = useTrans();
  useSignal(grants.changed);
  const list = grants.grants;
  return (
    <section
      className="jp-AgentBox-grants"
      aria-label={trans.__('Lasting answers')}
    >
      <ul role="list">
        {list?.map(grant => (
          <li key={grant.id} className="jp-AgentBox-grant">
            <Grant grant={grant} onRevoke={() => grants.revoke(grant.id)} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface IGrantProps {
  grant: IGrant;
  onRevoke: () => Promise<void>;
}

function Grant({ grant, onRevoke }: IGrantProps): JSX.Element {
  const trans = useTrans();
  const nameOf = useNameOf();
  const [isBusy, setBusy] = React.useState(false);
  const [failure, setFailure] = React.useState('');
  const revoke = (event: React.MouseEvent): void => {
    if (!event.nativeEvent.isTrusted) {
      return; // what is revoked may be a rejection
    }
    setBusy(true);
    setFailure('');
    onRevoke()
      .catch((error: unknown) => {
        setFailure(label(error instanceof Error ? error.message : '', 300));
      })
      .finally(() => {
        setBusy(false);
      });
  };
  const what = describeGrant(grant, trans);
  return (
    <>
      <div className="jp-AgentBox-grantLine">
        <span>{what}</span>
        <button
          type="button"
          className="jp-AgentBox-link"
          aria-label={trans.__('Revoke: %1', what)}
          disabled={isBusy}
          onClick={revoke}
        >
          {trans.__('Revoke')}
        </button>
      </div>
      <div className="jp-AgentBox-grantFacts">
        {describeUses(grant, nameOf, trans)}
      </div>
      {grant.void ? (
        <p className="jp-AgentBox-warning">{describeVoid(grant.void, trans)}</p>
      ) : null}
      {failure ? <p className="jp-AgentBox-error">{failure}</p> : null}
    </>
  );
}
