/**
 * The pending requests, oldest first, by notebook.
 */
import React from 'react';

import { useCardContext, useTrans } from '../../ui/context';
import type { IApproval } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';
import { label } from '../../ui/text/visibleText';
import { RequestCard } from '../../ui/card/RequestCard';
import { TypedText } from '../../ui/card/TypedText';
import { PersonButton } from '../../ui/guarded/PersonButton';
import { openPage } from '../../ui/question/Address';
import { oldestFirst } from '../../model/entry';
import { useGoToCell } from '../../ui/hooks/useGoToCell';
import { useSignal } from '../../ui/hooks/useSignal';
import { ITEM_KEY } from '../../ui/hooks/useWindow';
import { LinkButton } from '../../ui/components/VisibleText';
import { WindowedList } from '../../ui/components/WindowedList';
import { ShownContent } from '../../ui/guarded/DecisionButton';
import { BatchTable } from './BatchTable';
import { itemsOf, tableKey } from './batches';
import type { IPendingItem } from './batches';
import { FilterBar } from './FilterBar';
import { useForgetAllBut } from './keptReasons';
import type { PendingFilter } from './pendingFilter';
import { ALL, RejectAll } from './RejectAll';
import { useFilledIn } from './useFilledIn';
import { grouped } from './grouped';

/** The number of entries that are rendered at first; a thousand cards at once would block the page. */
const MAX_SHOWN = 50;

export interface IPendingListProps {
  /** What a person filters by. */
  filter: PendingFilter;
  /** The id of a request that is shown even if many older ones are pending. */
  wanted: string | null;
  /** Whether that request is opened if it is a row of a table. */
  isOpened: boolean;
  /** Changes each time that a person wants to reject all that wait. */
  rejectsAll: number;
  /** Is told that nothing waits any more. */
  onEmptied?: (list: HTMLElement) => void;
}

export function PendingList(props: IPendingListProps): JSX.Element {
  const trans = useTrans();
  const { wanted, filter } = props;
  const { model } = useCardContext();
  useSignal(model.changed);
  useSignal(filter.changed);
  const [limit, setLimit] = React.useState(MAX_SHOWN);
  const [notice, setNotice] = React.useState(NO_NOTICE);
  const [, closeForm] = React.useReducer((count: number) => count + 1, 0);
  const { pending } = model;
  const section = React.useRef<HTMLElement>(null);
  const groups = useGroups(useLingering(section, pending));
  const isFilledIn = useFilledIn();
  const matching = accepted(
    groups,
    one => filter.accepts(one) || isFilledIn(one.id)
  );
  const all = pendingIn(matching);
  const total = all.length;
  const { shown, more } = firstItems(matching, limit, wanted);
  const shownPending = pendingIn(shown);
  const opened = useOpened(shown, wanted);
  useForgetAllBut(reasonKeys(groups));
  const onFailure = (text: string, typed = ''): void => {
    setNotice({ text, typed });
  };
  useFocusInList(section);
  const isEmpty = pending.length === 0;
  const { onEmptied } = props;
  React.useLayoutEffect(() => {
    if (isEmpty && section.current) {
      onEmptied?.(section.current);
    }
  }, [isEmpty, onEmptied]);

  return (
    <section
      ref={section}
      tabIndex={-1}
      className="jp-AgentBox-pending"
      aria-label={trans.__('Approval requests')}
    >
      <ConnectionNote />
      <Notice
        {...notice}
        onClose={() => {
          setNotice(NO_NOTICE);
        }}
      />
      {pending.length === 0 && model.connection === 'connected' ? (
        <Empty />
      ) : null}
      <CallsAtHub />
      <FilterBar
        filter={filter}
        shown={shownPending.length}
        total={pending.length}
        onLeave={() => {
          firstPlace(section.current)?.focus();
        }}
      />
      <ShownContent.Provider value={filter.text}>
        <RejectAll
          shown={shownPending}
          all={all}
          isFiltered={filter.isActive}
          wanted={props.rejectsAll}
          onClose={closeForm}
          onFailure={onFailure}
        />
        {shown.map(([path, items]) => (
          <Group
            key={path}
            path={path}
            items={items}
            wanted={wanted}
            isOpened={props.isOpened}
            opened={opened}
            onFailure={onFailure}
          />
        ))}
      </ShownContent.Provider>
      {more > 0 ? (
        <LinkButton
          label={trans._n(
            'Show %1 more (%2 in total)',
            'Show %1 more (%2 in total)',
            Math.min(MAX_SHOWN, more),
            total
          )}
          onClick={() => {
            setLimit(limit + MAX_SHOWN);
          }}
        />
      ) : null}
    </section>
  );
}

function ConnectionNote(): JSX.Element | null {
  const { model } = useCardContext();
  const trans = useTrans();
  const texts = {
    connecting: null,
    connected: null,
    unreachable: trans.__(
      'The server cannot be reached. This list may be out of date.'
    ),
    forbidden: trans.__(
      'The server refused to list the requests. Log in again.'
    ),
    not_authorized: trans.__(
      'You can use this server, but you do not have the right to read its requests.'
    ),
    stopped: trans.__(
      'The server was stopped, or cannot list its requests. If it was stopped, start it again and reload the page.'
    ),
    failing: trans.__(
      'The server could not list the requests; its log says why. This list may be out of date.'
    ),
    absent: trans.__(
      'The server extension is not enabled: run “jupyter server extension enable jupyter_agentbox” and restart the server.'
    )
  };
  const text = texts[model.connection];
  return text ? <p className="jp-AgentBox-error">{text}</p> : null;
}

/** How many calls wait at the Hub, and links to one of them: where it was made, and where it is answered. */
function CallsAtHub(): JSX.Element | null {
  const { model, origins } = useCardContext();
  const trans = useTrans();
  const goToCell = useGoToCell();
  const count = model.atHub.length;
  const oldest = model.atHub.find(one => origins.hasPlace(one));
  const url = model.atHub
    .map(one => one.outcome?.review?.url)
    .find(each => typeof each === 'string');
  return count > 0 ? (
    <p role="status" className="jp-AgentBox-atHub">
      {trans._n(
        '%1 call is waiting for approval at the Hub.',
        '%1 calls are waiting for approval at the Hub.',
        count
      )}{' '}
      {oldest ? (
        <LinkButton
          label={trans._n('Show it', 'Show one', count)}
          onClick={() => {
            goToCell(oldest);
          }}
        />
      ) : null}{' '}
      {url ? (
        <PersonButton
          isLink
          label={trans._n('Show it at the Hub', 'Show one at the Hub', count)}
          onActivate={() => {
            openPage(new URL(url, document.baseURI).href);
          }}
        />
      ) : null}
    </p>
  ) : null;
}

function Empty(): JSX.Element {
  const trans = useTrans();
  const { model } = useCardContext();
  return (
    <div className="jp-AgentBox-empty">
      <p>
        {model.atHub.length > 0
          ? trans.__('No requests are waiting for you here.')
          : trans.__('No requests are waiting.')}
      </p>
      <p>
        {trans.__(
          'When notebook code calls a tool, the request appears here and under its cell until you allow, edit or reject it.'
        )}
      </p>
    </div>
  );
}

const NO_NOTICE = { text: '', typed: '' };

interface INoticeProps {
  text: string;
  typed: string;
  onClose: () => void;
}

/** Why an answer was not accepted, and what was typed for it, after its card has left the list. */
function Notice({ text, typed, onClose }: INoticeProps): JSX.Element {
  const trans = useTrans();
  return (
    <>
      <div role="alert">
        {text ? (
          <p className="jp-AgentBox-error">
            {text} <LinkButton label={trans.__('Close')} onClick={onClose} />
          </p>
        ) : null}
      </div>
      <TypedText text={typed} />
    </>
  );
}

interface IGroupProps {
  path: string;
  items: readonly IShownItem[];
  wanted: string | null;
  isOpened: boolean;
  opened: IOpened;
  /** Is told of an answer that came too late, with the name of its request, and of what was typed for it. */
  onFailure: (text: string, typed?: string) => void;
}

function Group(props: IGroupProps): JSX.Element {
  const trans = useTrans();
  const { path, items, wanted, onFailure } = props;
  const title = path ? label(path) : trans.__('Outside a notebook');
  const headingId = React.useId();
  const list = React.useRef<HTMLUListElement>(null);
  const keys = items.map(({ key }) => key);
  const pinned = usePinned(list, items, wanted);
  return (
    <section className="jp-AgentBox-group">
      <h4 id={headingId} title={title}>
        <bdi>{title}</bdi>
      </h4>
      <WindowedList
        listRef={list}
        keys={keys}
        pinned={pinned}
        labelledBy={headingId}
        labelOf={index => label(qualifiedName(items[index].approvals[0].call))}
      >
        {index => {
          const { approvals, isBatch, hidden } = items[index];
          return isBatch ? (
            <BatchTable
              approvals={approvals}
              hidden={hidden}
              wanted={wanted}
              isOpened={props.isOpened}
              onFailure={onFailure}
            />
          ) : (
            <Single
              approval={approvals[0]}
              opened={props.opened}
              onFailure={onFailure}
            />
          );
        }}
      </WindowedList>
    </section>
  );
}

/**
 * The entries that stay rendered however far away they are: tables, which know what is selected, cards with an open form,
 * the wanted one, and those to which a key may lead.
 */
function usePinned(
  list: React.RefObject<HTMLElement>,
  items: readonly IShownItem[],
  wanted: string | null
): ReadonlySet<string> {
  const isFilledIn = useFilledIn();
  const kept = items.filter(
    ({ isBatch, approvals }) =>
      isBatch || approvals.some(({ id }) => id === wanted || isFilledIn(id))
  );
  const focused = [...(list.current?.children ?? [])]
    .find(item => item.contains(document.activeElement))
    ?.getAttribute(ITEM_KEY);
  const at = items.findIndex(({ key }) => key === focused);
  const near = at < 0 ? [] : items.slice(Math.max(0, at - 1), at + 2);
  const ends = [...items.slice(0, 1), ...items.slice(-1)];
  return new Set([...kept, ...near, ...ends].map(({ key }) => key));
}

/** Which of the requests that are in no table are shown whole; each other one takes two lines. */
interface IOpened {
  has: (id: string) => boolean;
  /** Show a request whole from now on. */
  open: (id: string) => void;
}

/**
 * The first request is shown whole, and those to which somebody went: they stay so, since what folds loses what was chosen
 * in it, and moves what is below it.
 */
function useOpened(groups: Groups<IShownItem>, wanted: string | null): IOpened {
  const isFilledIn = useFilledIn();
  const [opened, setOpened] = React.useState<ReadonlySet<string>>(new Set());
  const first = groups
    .flatMap(([, items]) => items)
    .find(({ isBatch }) => !isBatch)?.approvals[0].id;
  const open = (id: string): void => {
    setOpened(before => (before.has(id) ? before : new Set([...before, id])));
  };
  React.useEffect(() => {
    if (wanted !== null) {
      open(wanted);
    }
  }, [wanted]);
  return {
    has: id => id === first || opened.has(id) || isFilledIn(id),
    open
  };
}

interface ISingleProps {
  approval: IApproval;
  opened: IOpened;
  onFailure: (text: string, typed: string) => void;
}

function Single(props: ISingleProps): JSX.Element {
  const { approval, opened, onFailure } = props;
  const { model } = useCardContext();
  return (
    <div
      onFocus={() => {
        opened.open(approval.id);
      }}
    >
      <RequestCard
        requestId={approval.id}
        hasLink={true}
        isCompact={!opened.has(approval.id)}
        onFailure={(text, typed) => {
          const { approval: present } = model.get(approval.id);
          if (present?.status !== 'pending') {
            const name = label(qualifiedName(approval.call));
            onFailure(`${name}: ${text}`, typed);
          }
        }}
      />
    </div>
  );
}

/** An entry, and how many of its pending requests the filter hides. */
interface IShownItem extends IPendingItem {
  hidden: number;
}

/** The entries of each notebook, by its path. */
type Groups<Item extends IPendingItem = IPendingItem> = readonly (readonly [
  string,
  readonly Item[]
])[];

/** Requests by notebook and tool. */
function useGroups(approvals: readonly IApproval[]): Groups {
  const isFilledIn = useFilledIn();
  const batches = React.useRef<ReadonlySet<string>>(new Set());
  const isAlone = (id: string): boolean =>
    !batches.current.has(id) && isFilledIn(id);
  // What was decided keeps its place in a table; a card goes.
  const kept = approvals.filter(
    ({ id, status }) => status === 'pending' || batches.current.has(id)
  );
  // The notebook with the oldest request comes first.
  const byNotebook = grouped(kept, ({ call }) => call.notebook_path ?? '');
  const groups = [...byNotebook].map(([path, of]) => {
    const wasBatch = (key: string): boolean => batches.current.has(path + key);
    return [path, itemsOf(of, wasBatch, isAlone)] as const;
  });
  React.useEffect(() => {
    batches.current = new Set(
      groups.flatMap(([path, items]) =>
        items
          .filter(({ isBatch }) => isBatch)
          .flatMap(({ key, approvals: rows }) => [
            path + key,
            ...rows.map(({ id }) => id)
          ])
      )
    );
  });
  return groups;
}

/** What of the entries is shown: a table stays one, and has fewer rows. */
function accepted(
  groups: Groups,
  isShown: (approval: IApproval) => boolean
): Groups<IShownItem> {
  return groups.map(([path, items]) => {
    const some = items.map(item => {
      const approvals = item.approvals.filter(isShown);
      const hidden = waitingOf(item.approvals) - waitingOf(approvals);
      return { ...item, approvals, hidden };
    });
    return [path, some.filter(({ approvals }) => approvals.length > 0)];
  });
}

/** The pending requests in entries. */
function pendingIn(groups: Groups): IApproval[] {
  return groups.flatMap(([, items]) =>
    items.flatMap(({ approvals }) => approvals.filter(isPending))
  );
}

function isPending({ status }: IApproval): boolean {
  return status === 'pending';
}

function waitingOf(approvals: readonly IApproval[]): number {
  return approvals.filter(isPending).length;
}

/** The keys of the reasons that may be kept, also while a filter hides what they are for. */
function reasonKeys(groups: Groups): ReadonlySet<string> {
  const items = groups.flatMap(([, some]) => some);
  const tables = items.filter(({ isBatch }) => isBatch);
  const keys = tables.map(({ approvals }) => tableKey(approvals[0]));
  return new Set(items.length > 0 ? [ALL, ...keys] : []);
}

/** Where an arrow leads from the filter: the first card, or the row of the first table that has the keyboard's focus. */
function firstPlace(list: HTMLElement | null): HTMLElement | null {
  const card =
    list?.querySelector<HTMLElement>('.jp-AgentBox-group .jp-AgentBox-card') ??
    null;
  return (
    card?.querySelector<HTMLElement>('[data-row-id][tabindex="0"]') ?? card
  );
}

/** The entries to show, including the wanted one, and how many are left. */
function firstItems<Item extends IPendingItem>(
  groups: Groups<Item>,
  limit: number,
  wanted: string | null
): { shown: Groups<Item>; more: number } {
  let index = 0;
  const shown = groups.map(([path, items]) => {
    const some = items.filter(({ approvals }) => {
      index += 1;
      return index <= limit || approvals.some(({ id }) => id === wanted);
    });
    return [path, some] as const;
  });
  return {
    shown: shown.filter(([, items]) => items.length > 0),
    more: Math.max(0, index - limit)
  };
}

/**
 * The requests that wait, and, while the pointer is on the list, those of tables that were decided meanwhile: no row moves
 * under a pointer that is about to press.
 */
function useLingering(
  section: React.RefObject<HTMLElement>,
  pending: readonly IApproval[]
): readonly IApproval[] {
  const { model } = useCardContext();
  const [settled, setSettled] = React.useState<readonly IApproval[]>([]);
  React.useEffect(() => {
    const node = section.current;
    const onSettled = (_: unknown, approval: IApproval): void => {
      if (node?.matches(':hover')) {
        setSettled(before => [...before, approval]);
      }
    };
    const onLeave = (): void => {
      setSettled([]);
    };
    model.settled.connect(onSettled);
    node?.addEventListener('pointerleave', onLeave);
    return () => {
      model.settled.disconnect(onSettled);
      node?.removeEventListener('pointerleave', onLeave);
    };
  }, [model, section]);
  return React.useMemo(
    () =>
      settled.length > 0 ? [...pending, ...settled].sort(oldestFirst) : pending,
    [pending, settled]
  );
}

/**
 * When what has the focus leaves the list, the card that takes its place gets the focus: a card, not a button, so that a
 * key that comes late decides nothing. It also looks when the form that rejects all closes. A table whose last row was
 * decided hands on the focus, too, although it may stay for a while.
 */
function useFocusInList(section: React.RefObject<HTMLElement>): void {
  const before = placeIn(section.current, document.activeElement);
  const table = document.activeElement?.closest<HTMLElement>(WAITING_TABLE);
  React.useLayoutEffect(() => {
    const list = section.current;
    const focused = document.activeElement;
    if (before >= 0 && !list?.contains(focused)) {
      const rest = cardsIn(list);
      const next = rest[Math.min(before, rest.length - 1)] ?? list;
      next?.focus({ preventScroll: true });
    } else if (table?.contains(focused) && !table.matches(WAITING_TABLE)) {
      (waitingBeside(table, list) ?? list)?.focus({ preventScroll: true });
    }
  });
}

const WAITING_TABLE = '.jp-AgentBox-batch[data-status="pending"]';

/** The first card after another one that waits, or else the last one before it. */
function waitingBeside(
  card: HTMLElement,
  list: HTMLElement | null
): HTMLElement | undefined {
  const waiting = cardsIn(list).filter(
    one => one === card || one.dataset['status'] === 'pending'
  );
  const at = waiting.indexOf(card);
  return waiting[at + 1] ?? waiting[at - 1];
}

function cardsIn(list: HTMLElement | null): HTMLElement[] {
  return [...(list?.querySelectorAll<HTMLElement>('.jp-AgentBox-card') ?? [])];
}

/** The index of the card with an element, or else of the first card after it; -1 outside the list. */
function placeIn(list: HTMLElement | null, element: Element | null): number {
  if (!element || !list?.contains(element)) {
    return -1;
  }
  const cards = cardsIn(list);
  const isAhead = (card: HTMLElement): boolean =>
    (card.compareDocumentPosition(element) &
      Node.DOCUMENT_POSITION_FOLLOWING) !==
    0;
  const own = cards.findIndex(card => card.contains(element));
  return own >= 0 ? own : cards.filter(isAhead).length;
}
