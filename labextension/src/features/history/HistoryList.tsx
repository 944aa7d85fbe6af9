/**
 * The final requests.
 */
import React from 'react';

import { useTrans } from '../../ui/context';
import type { IApproval } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';
import type { IHistoryModel } from '../../internalTokens';
import { label } from '../../ui/text/visibleText';
import { RequestCard } from '../../ui/card/RequestCard';
import { useSignal } from '../../ui/hooks/useSignal';
import { ITEM_KEY } from '../../ui/hooks/useWindow';
import { LinkButton } from '../../ui/components/VisibleText';
import { WindowedList } from '../../ui/components/WindowedList';
import { LoadFailure } from './LoadFailure';

export interface IHistoryListProps {
  history: IHistoryModel;
}

export function HistoryList(props: IHistoryListProps): JSX.Element {
  const trans = useTrans();
  const { history } = props;
  useSignal(history.changed);
  return (
    <section
      className="jp-AgentBox-history"
      aria-label={trans.__('Recent history')}
    >
      {history.items.length === 0 && history.state === 'ready' ? (
        <Empty />
      ) : null}
      <Items approvals={history.items} />
      <Foot history={history} />
    </section>
  );
}

/** The cards, of which only those near the view are rendered if there are many. */
function Items(props: { approvals: readonly IApproval[] }): JSX.Element {
  const { approvals } = props;
  const list = React.useRef<HTMLUListElement>(null);
  const keys = approvals.map(({ id }) => id);
  const opened = useOpened(list);
  return (
    <WindowedList
      listRef={list}
      keys={keys}
      pinned={opened}
      labelOf={index => label(qualifiedName(approvals[index].call))}
    >
      {index => <RequestCard requestId={keys[index]} hasLink={true} />}
    </WindowedList>
  );
}

/** The items with something that a person opened: they stay as they are, wherever the person scrolls. */
function useOpened(list: React.RefObject<HTMLElement>): ReadonlySet<string> {
  const [opened, setOpened] = React.useState<ReadonlySet<string>>(new Set());
  React.useEffect(() => {
    const node = list.current;
    const onToggle = ({ target }: Event): void => {
      const item = (target as Element).closest(`[${ITEM_KEY}]`);
      const id = item?.getAttribute(ITEM_KEY);
      if (id) {
        const isOpen = item?.querySelector('details[open]') !== null;
        setOpened(before => withOrWithout(before, id, isOpen));
      }
    };
    node?.addEventListener('toggle', onToggle, true); // it does not bubble
    return () => {
      node?.removeEventListener('toggle', onToggle, true);
    };
  }, [list]);
  return opened;
}

function withOrWithout(
  ids: ReadonlySet<string>,
  id: string,
  isIn: boolean
): ReadonlySet<string> {
  if (ids.has(id) === isIn) {
    return ids;
  }
  const others = [...ids].filter(each => each !== id);
  return new Set(isIn ? [...others, id] : others);
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
