/**
 * The grants in force: the scope of each, who gave it, how often it was used, and a button that revokes it.
 */
import React from 'react';

import type { IGrant } from '../../api/protocol';
import type { IGrantsModel } from '../../internalTokens';
import { useNameOf, useTrans } from '../../ui/context';
import { DecisionButton } from '../../ui/guarded/DecisionButton';
import { Guarded, GuardedCard } from '../../ui/guarded/GuardedCard';
import { useDoing } from '../../ui/hooks/useDoing';
import { useKeptFocus } from '../../ui/hooks/useKeptFocus';
import { useSignal } from '../../ui/hooks/useSignal';
import {
  describeGrant,
  describeUses,
  describeVoid
} from '../../ui/text/grants';

export interface IGrantListProps {
  grants: IGrantsModel;
}

export function GrantList({ grants }: IGrantListProps): JSX.Element {
  const trans = useTrans();
  useSignal(grants.changed);
  const list = grants.grants;
  const root = React.useRef<HTMLElement>(null);
  useKeptFocus(root);
  return (
    <section
      ref={root}
      className="jp-AgentBox-grants"
      tabIndex={-1}
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
  const { run, isBusy, failure } = useDoing(grant.id);
  const what = describeGrant(grant, trans);
  return (
    <>
      <GuardedCard className="jp-AgentBox-bareCard" isGuarded aria-label={what}>
        <Guarded>
          <div className="jp-AgentBox-grantLine">
            <span>{what}</span>
            <DecisionButton
              kind="link"
              label={trans.__('Revoke')}
              name={trans.__('Revoke: %1', what)}
              isBusy={isBusy}
              onActivate={() => {
                run(onRevoke); // what is revoked may be a rejection
              }}
            />
          </div>
        </Guarded>
      </GuardedCard>
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
