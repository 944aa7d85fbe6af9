/**
 * A card for a request id: connects the card to the models.
 */
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { NameOf } from '../text/reviewers';
import type { IApprovalModel, IOrigins } from '../../tokens';
import { visible } from '../text/visibleText';
import { Card } from './Card';
import { LongRequest } from './LongArguments';
import { useSignal } from '../hooks/useSignal';
import { WhileConnected } from './WhileConnected';

/** What every view of requests needs. */
export interface ICardContext {
  model: IApprovalModel;
  origins: IOrigins;
  nameOf: NameOf;
  translator: ITranslator;
  trans: TranslationBundle;
  /** Show the panel and go to a request in it; views that are in the panel have no need of it. */
  openInPanel?: (id: string) => void;
  /** Move the focus on from a card that was decided. */
  leave?: (card: HTMLElement) => void;
}

export interface IRequestCardProps {
  requestId: string;
  context: ICardContext;
  /** What the output says in a front end without this extension. */
  fallback?: string;
  /** Whether to offer the way to the cell. */
  hasLink?: boolean;
  /** Whether the card is a widget's, which its kernel lays out. */
  isInWidget?: boolean;
  /** Hears why an answer was not taken. */
  onFailure?: (text: string) => void;
}

/** Another request is another card: with buttons that are not ready yet, and with no form that was open. */
export function RequestCard(props: IRequestCardProps): JSX.Element {
  const { requestId, context } = props;
  return (
    <WhileConnected key={requestId} requestId={requestId} context={context}>
      <OneRequest {...props} />
    </WhileConnected>
  );
}

function OneRequest(props: IRequestCardProps): JSX.Element {
  const { requestId, context, fallback, hasLink } = props;
  const { model, origins, openInPanel, trans } = context;
  useSignal(model.changed, id => id === null || id === requestId);
  React.useEffect(() => {
    const tracking = model.track(requestId);
    return () => {
      tracking.dispose();
    };
  }, [model, requestId]);

  const { approval, state } = model.get(requestId);
  const show = (): void => {
    void model.load(requestId);
  };
  if (approval?.status === 'pending' && approval.call.omitted) {
    return <LongRequest approval={approval} trans={trans} onShow={show} />;
  }
  if (approval) {
    return (
      <Card
        approval={approval}
        origin={origins.describe(approval)}
        now={() => model.now()}
        nameOf={context.nameOf}
        translator={context.translator}
        trans={trans}
        onDecide={(shown, answer) => model.decide(shown, answer)}
        onFailure={props.onFailure}
        onLeave={context.leave}
        onShowArguments={state === 'whole' ? undefined : show}
        isInWidget={props.isInWidget}
        onOpenInPanel={
          openInPanel
            ? () => {
                openInPanel(requestId);
              }
            : undefined
        }
        onReveal={
          hasLink
            ? shown => {
                void origins.reveal(shown);
              }
            : undefined
        }
      />
    );
  }
  return (
    <div className="jp-AgentBox-card jp-mod-neutral">
      {fallback ? (
        <p className="jp-AgentBox-fallback">{visible(fallback)}</p>
      ) : null}
      <p className="jp-AgentBox-note">
        {state === 'loading' ? trans.__('Loading the approval request…') : null}
        {state === 'unreachable'
          ? trans.__('The server does not answer. Trying again…')
          : null}
        {state === 'unknown' && !fallback
          ? trans.__('This server has no such approval request.')
          : null}
      </p>
    </div>
  );
}
