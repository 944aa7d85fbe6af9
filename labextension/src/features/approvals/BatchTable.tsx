/**
 * Requests of one tool as a table, in which a person decides many at once.
 */
import React from 'react';

import type { IApproval } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';
import { Countdown, OFFERED } from '../../ui/card/Countdown';
import { RiskLine, RuleSays, Says } from '../../ui/card/ToolFacts';
import { LinkButton, VisibleText } from '../../ui/components/VisibleText';
import { useCardContext, useTrans } from '../../ui/context';
import { GuardedCard } from '../../ui/guarded/GuardedCard';
import { describeLoss } from '../../ui/text/connection';
import { describeIsolation } from '../../ui/text/isolation';
import { describeRisk, isGrave } from '../../ui/text/risk';
import { label } from '../../ui/text/visibleText';
import { useKeptFocus } from '../../ui/hooks/useKeptFocus';
import { useGoToCell } from '../../ui/hooks/useGoToCell';
import { ITEM_KEY, useWindow } from '../../ui/hooks/useWindow';
import { BatchBar } from './BatchBar';
import { BatchRow } from './BatchRow';
import { hasColumns, isWhollyShown, layoutOf, tableKey } from './batches';
import type { ITableLayout } from './batches';
import { byCell, entriesOf, reachable } from './tableEntries';
import { useBatchSending } from './useBatchSending';
import { useSelection } from './useSelection';
import type { ISelection } from './useSelection';

export interface IBatchTableProps {
  /** All requests of one tool, oldest first; some may already be decided, and keep their position. */
  approvals: readonly IApproval[];
  /** How many pending requests of the tool are hidden by the filter. */
  hidden: number;
  /** A request whose row is rendered even if it is out of view. */
  wanted: string | null;
  /** Whether that request is opened. */
  isOpened: boolean;
  /** Is told why answers to requests that are over were not accepted, and what was typed for one. */
  onFailure: (text: string, typed?: string) => void;
}

export function BatchTable(props: IBatchTableProps): JSX.Element {
  const trans = useTrans();
  const { model } = useCardContext();
  const cells = byCell(props.approvals);
  const approvals = cells.flatMap(([, rows]) => rows);
  const root = React.useRef<HTMLDivElement>(null);
  useKeptFocus(root); // the form of a rejection goes as soon as it is sent
  const titleId = React.useId();
  const opening = useOpening(props.isOpened ? props.wanted : null);
  const pending = approvals.filter(({ status }) => status === 'pending');
  const isSelectable = (approval: IApproval): boolean =>
    approval.status === 'pending' &&
    !approval.call.omitted &&
    (isWhollyShown(approval) || opening.seen.has(approval.id));
  const selectable = pending.filter(isSelectable);
  const selection = useSelection(selectable.map(({ id }) => id));
  const chosen = selectable.filter(({ id }) => selection.selected.has(id));
  const { isBusy, failures, fail, send } = useBatchSending(props.onFailure);
  const layout = useStable(layoutOf(approvals, trans));
  const current = pending.some(({ id }) => id === selection.current)
    ? selection.current
    : (pending[0]?.id ?? null);
  const onKeyDown = useRowKeys(root, { selection, opening, current, pending });
  const entries = entriesOf(cells);
  const grid = React.useRef<HTMLDivElement>(null);
  const parts = useWindow(
    grid,
    entries.map(({ key }) => key),
    new Set([
      ...reachable(pending, current),
      ...opening.open,
      ...(props.wanted === null ? [] : [props.wanted])
    ])
  );
  const loss = describeLoss(model.connection, trans);
  const [first] = approvals;
  const name = label(qualifiedName(first.call));

  return (
    <GuardedCard
      ref={root}
      className="jp-mod-waiting jp-AgentBox-batch"
      isGuarded={pending.length > 0}
      data-status={pending.length > 0 ? 'pending' : undefined}
      data-risk={describeRisk(first, trans).risk}
      aria-label={
        pending.length > 0
          ? trans._n(
              '%1 approval request of %2',
              '%1 approval requests of %2',
              pending.length,
              name
            )
          : trans.__('Decided requests of %1', name)
      }
      onKeyDownCapture={onKeyDown}
    >
      <Head
        approval={first}
        pending={pending}
        hidden={props.hidden}
        titleId={titleId}
      />
      <Same layout={layout} count={approvals.length} />
      <div
        ref={grid}
        role="treegrid"
        className="jp-AgentBox-rows"
        aria-multiselectable="true"
        aria-labelledby={titleId}
        style={
          {
            '--agentbox-columns': hasColumns(layout)
              ? Math.max(1, layout.columns.length)
              : 1
          } as React.CSSProperties
        }
      >
        <ColumnHeads
          layout={layout}
          cells={cells.length}
          isFiltered={props.hidden > 0}
          isWaiting={pending.length > 0}
          selectable={selectable}
          selection={selection}
        />
        {parts.map(part => {
          if ('height' in part) {
            const { gapBefore, height } = part;
            return (
              <div
                key={`gap ${gapBefore}`}
                role="presentation"
                style={{ height }}
              />
            );
          }
          const { key, approval, cell } = entries[part.index];
          return (
            <div key={key} role="presentation" {...{ [ITEM_KEY]: key }}>
              {approval ? (
                <BatchRow
                  approval={approval}
                  place={approvals.indexOf(approval) + 1}
                  count={approvals.length}
                  columns={layout.columns}
                  hasColumns={hasColumns(layout)}
                  isSelected={
                    selection.selected.has(approval.id) &&
                    isSelectable(approval)
                  }
                  isSelectable={isSelectable(approval)}
                  isCurrent={approval.id === current}
                  isOpen={opening.open.has(approval.id)}
                  isBusy={isBusy && selection.selected.has(approval.id)}
                  failure={failures.get(approval.id) ?? ''}
                  onToggle={selection.toggle}
                  onExtend={selection.extendTo}
                  onOpen={opening.toggle}
                  onFailure={fail}
                />
              ) : (
                <CellHead
                  rows={cell}
                  selectable={cell.filter(isSelectable)}
                  selection={selection}
                />
              )}
            </div>
          );
        })}
      </div>
      <div className="jp-AgentBox-batchBar">
        {loss ? (
          <p className="jp-AgentBox-note" role="status">
            {loss}
          </p>
        ) : pending.length > 0 ? (
          <BatchBar
            count={chosen.length}
            isGrave={isGrave(describeRisk(first, trans).risk)}
            isBusy={isBusy}
            describedBy={titleId}
            reasonKey={tableKey(first)}
            onDecide={answer => send(chosen, answer)}
          />
        ) : null}
      </div>
    </GuardedCard>
  );
}

interface IHeadProps {
  approval: IApproval;
  pending: readonly IApproval[];
  hidden: number;
  titleId: string;
}

function Head(props: IHeadProps): JSX.Element {
  const trans = useTrans();
  const { origins } = useCardContext();
  const goToCell = useGoToCell();
  const { approval, pending, hidden, titleId } = props;
  const { call, evaluation } = approval;
  // Where rules differ, each opened row has its own.
  const hasOneReason = pending.every(
    one => one.evaluation.reason === evaluation.reason
  );
  return (
    <div className="jp-AgentBox-header">
      <div className="jp-AgentBox-headline">
        <span id={titleId} className="jp-AgentBox-name">
          <VisibleText text={call.server} />.<VisibleText text={call.tool} />
        </span>
        <span className="jp-AgentBox-batchFacts">
          {pending.length > 0 ? (
            <span>
              {hidden > 0
                ? trans._n(
                    '%1 of %2 shown',
                    '%1 of %2 shown',
                    pending.length,
                    pending.length + hidden
                  )
                : trans._n('%1 waiting', '%1 waiting', pending.length)}
            </span>
          ) : null}
          <TimeLeft pending={pending} />
        </span>
      </div>
      <div className="jp-AgentBox-subline">
        <RiskLine approval={approval} />
      </div>
      <Says approval={approval} />
      {hasOneReason ? <RuleSays approval={approval} /> : null}
      <div className="jp-AgentBox-origin">
        <span>{trans.__('From %1', origins.describe(approval))}</span>
        <span className="jp-AgentBox-isolation">
          {describeIsolation(call, trans)}
        </span>
        {origins.hasPlace(approval) ? (
          <LinkButton
            label={trans.__('Go to cell')}
            onClick={() => {
              goToCell(approval);
            }}
          />
        ) : null}
      </div>
    </div>
  );
}

/** The time left for the request that expires first. *Keep waiting* is for all that expire soon. */
function TimeLeft(props: {
  pending: readonly IApproval[];
}): JSX.Element | null {
  const { model } = useCardContext();
  const ends = props.pending.flatMap(({ expires_at }) => expires_at ?? []);
  if (ends.length === 0) {
    return null;
  }
  const isSooner = (end: string, other: string): boolean =>
    Date.parse(end) < Date.parse(other);
  const first = ends.reduce((one, next) => (isSooner(next, one) ? next : one));
  const extend = async (): Promise<boolean> => {
    const soon = model.now() + OFFERED * 1000;
    const extended = await Promise.all(
      props.pending
        .filter(({ expires_at: end }) => end && Date.parse(end) <= soon)
        .map(({ id }) => model.extend(id))
    );
    return extended.includes(true);
  };
  return (
    <Countdown expiresAt={first} now={() => model.now()} onExtend={extend} />
  );
}

/** Shows the arguments that are the same in all rows once. */
function Same(props: {
  layout: ITableLayout;
  count: number;
}): JSX.Element | null {
  const trans = useTrans();
  const { layout, count } = props;
  if (layout.same.length === 0) {
    return null;
  }
  return (
    <p className="jp-AgentBox-batchSame">
      {trans._n('The same in %1:', 'The same in all %1:', count)}{' '}
      {layout.same.map(({ name, value }, index) => (
        <React.Fragment key={name}>
          {index > 0 ? ', ' : ''}
          <code>
            {label(name, 60)}={value.text}
          </code>
        </React.Fragment>
      ))}
    </p>
  );
}

interface IColumnHeadsProps {
  layout: ITableLayout;
  /** The number of cells from which the rows come. */
  cells: number;
  /** Whether the filter hides rows. */
  isFiltered: boolean;
  /** Whether any row still waits, so that there is something to select. */
  isWaiting: boolean;
  selectable: readonly IApproval[];
  selection: ISelection;
}

function ColumnHeads(props: IColumnHeadsProps): JSX.Element {
  const trans = useTrans();
  const { layout, cells, selectable, selection } = props;
  return (
    <>
      {props.isWaiting ? (
        <div role="row" className="jp-AgentBox-rowAll">
          <span role="gridcell">
            <SelectAll
              label={
                props.isFiltered
                  ? trans.__('All that are shown (%1)', selectable.length)
                  : cells > 1
                    ? trans.__('All of this tool (%1)', selectable.length)
                    : trans.__('All of this cell (%1)', selectable.length)
              }
              approvals={selectable}
              selection={selection}
            />
          </span>
        </div>
      ) : null}
      {hasColumns(layout) && layout.columns.length > 0 ? (
        <div role="row" className="jp-AgentBox-row jp-AgentBox-rowHead">
          <span role="presentation" />
          {layout.columns.map(({ name }) => (
            <span key={name} role="columnheader">
              {label(name, 60)}
            </span>
          ))}
          <span role="presentation" />
        </div>
      ) : null}
    </>
  );
}

interface ICellHeadProps {
  rows: readonly IApproval[];
  selectable: readonly IApproval[];
  selection: ISelection;
}

function CellHead(props: ICellHeadProps): JSX.Element {
  const trans = useTrans();
  const { origins } = useCardContext();
  const { rows, selectable, selection } = props;
  return (
    <div role="row" className="jp-AgentBox-rowAll">
      <span role="gridcell">
        {rows.some(({ status }) => status === 'pending') ? (
          <SelectAll
            label={trans.__(
              '%1: all of this cell (%2)',
              origins.describe(rows[0]),
              selectable.length
            )}
            approvals={selectable}
            selection={selection}
          />
        ) : (
          origins.describe(rows[0])
        )}
      </span>
    </div>
  );
}

interface ISelectAllProps {
  label: string;
  approvals: readonly IApproval[];
  selection: ISelection;
}

/** A checkbox for several rows. Whatever the tool, nothing is selected until a person does so. */
function SelectAll(props: ISelectAllProps): JSX.Element {
  const { approvals, selection } = props;
  const ids = approvals.map(({ id }) => id);
  const count = ids.filter(id => selection.selected.has(id)).length;
  const box = React.useRef<HTMLInputElement>(null);
  const isWhole = count > 0 && count === ids.length;
  React.useEffect(() => {
    if (box.current) {
      box.current.indeterminate = count > 0 && !isWhole;
    }
  });
  return (
    <label>
      <input
        ref={box}
        type="checkbox"
        checked={isWhole}
        disabled={ids.length === 0}
        onChange={event => {
          if (event.nativeEvent.isTrusted) {
            selection.setAll(ids, !isWhole);
          }
        }}
      />
      {props.label}
    </label>
  );
}

/** The rows that are open, and those that ever were. */
interface IOpening {
  open: ReadonlySet<string>;
  seen: ReadonlySet<string>;
  toggle: (id: string) => void;
}

function useOpening(wanted: string | null): IOpening {
  const [open, setOpen] = React.useState<ReadonlySet<string>>(new Set());
  const [seen, setSeen] = React.useState<ReadonlySet<string>>(new Set());
  const toggle = React.useCallback((id: string) => {
    setOpen(before => {
      const after = new Set(before);
      if (!after.delete(id)) {
        after.add(id);
      }
      return after;
    });
    setSeen(before => new Set([...before, id]));
  }, []);
  const [last, setLast] = React.useState<string | null>(null);
  if (wanted !== last) {
    setLast(wanted);
    if (wanted !== null && !open.has(wanted)) {
      toggle(wanted);
    }
  }
  return { open, seen, toggle };
}

interface IRowKeys {
  selection: ISelection;
  opening: IOpening;
  current: string | null;
  pending: readonly IApproval[];
}

/**
 * The keys of a row: arrows move, with Shift they select, Space toggles, Enter opens, Control+A selects all. What is
 * pressed in an open card is the card's.
 */
function useRowKeys(
  root: React.RefObject<HTMLElement>,
  { selection, opening, current, pending }: IRowKeys
): (event: React.KeyboardEvent) => void {
  const rowOf = (id: string): HTMLElement | null | undefined =>
    root.current?.querySelector<HTMLElement>(`[data-row-id="${id}"]`);
  return event => {
    const row = (event.target as Element).closest('[data-row-id]');
    const isMine = event.target === row || event.target === root.current;
    if (!isMine || !event.nativeEvent.isTrusted || current === null) {
      return;
    }
    const ids = pending.map(({ id }) => id);
    const at = ids.indexOf(current);
    const places: Record<string, number> = {
      ArrowDown: row ? at + 1 : at,
      ArrowUp: at - 1,
      Home: 0,
      End: ids.length - 1
    };
    const place = places[event.key];
    if (place !== undefined) {
      const id = ids[Math.max(0, Math.min(ids.length - 1, place))];
      rowOf(id)?.focus();
      if (event.shiftKey) {
        if (selection.current !== current) {
          selection.moveTo(current);
        }
        selection.extendTo(id);
      } else {
        selection.moveTo(id);
      }
    } else if (event.key === ' ') {
      selection.toggle(current);
    } else if (event.key === 'Enter') {
      opening.toggle(current);
    } else if (event.key === 'a' && (event.ctrlKey || event.metaKey)) {
      selection.setAll(ids, true);
      rowOf(current)?.focus(); // from there Tab leads to the buttons
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
}

/** The previous value if the new one is equal, so that rows are not rendered for nothing. */
function useStable<T>(value: T): T {
  const kept = React.useRef({ text: '', value });
  const text = JSON.stringify(value);
  if (kept.current.text !== text) {
    kept.current = { text, value };
  }
  return kept.current.value;
}
