/**
 * The final requests.
 */
import React from 'react';

import { useTrans } from '../../ui/context';
import { qualifiedName } from '../../api/protocol';
import type { IHistoryModel } from '../../internalTokens';
import { label } from '../../ui/text/visibleText';
import { RequestCard } from '../../ui/card/RequestCard';
import { useSignal } from '../../ui/hooks/useSignal';
import { LinkButton } from '../../ui/components/VisibleText';
import { LoadFailure } from './LoadFailure';

export interface IHistoryListProps {
  history: IHistoryModel;
  /** Opens the page of all calls. */
  onOpenPage?: () => void;
}

export function HistoryList(props: IHistoryListProps): JSX.Element {
  const trans = useTrans();
  const { history, onOpenPage } = props;
  useSignal(history.changed);
  return (
    <section
      className="jp-AgentBox-history"
      aria-label={trans.__('Recent history')}
    >
      {onOpenPage ? (
        <LinkButton
          label={trans.__('Show all history')}
          title={trans.__('Open a page with all calls, a search and filters')}
          onClick={onOpenPage}
        />
      ) : null}
      {history.items.length === 0 && history.state === 'ready' ? (
        <Empty />
      ) : null}
      <ul role="list">
        {history.items.map(approval => (
          <li
            key={approval.id}
            className="jp-AgentBox-item"
            aria-label={label(qualifiedName(approval.call))}
          >
            <RequestCard requestId={approval.id} hasLink={true} />
          </li>
        ))}
      </ul>
      <Foot history={history} />
    </section>
  );
}

/** The request in progress, its failure, or what else there is. */
function Foot({ history }: IHistoryListProps): JSX.Element {
  const trans = useTrans();
  const { hasMore, state } = history;
  return (
    <>
      <span role="status">
        {state === 'loading' ? trans.__('Loading…') : null}
      </span>
      {state === 'failing' ? (
        <LoadFailure
          onRetry={() => {
            void (hasMore ? history.loadMore() : history.load());
          }}
        />
      ) : null}
      {state === 'ready' && hasMore ? (
        <LinkButton
          label={trans.__('Load more')}
          onClick={() => {
            void history.loadMore();
          }}
        />
      ) : null}
    </>
  );
}

function Empty(): JSX.Element {
  const trans = useTrans();
  return (
    <p className="jp-AgentBox-empty">
      {trans.__('Decided and expired requests appear here.')}
    </p>
  );
}
