/**
 * A request as a row of a table, and its card once it is opened.
 */
import React from 'react';

import type { IApproval } from '../../api/protocol';
import { SIGNS } from '../../ui/card/Outcome';
import { RequestCard } from '../../ui/card/RequestCard';
import { useNameOf, useTrans } from '../../ui/context';
import { stayInView } from '../../ui/guarded/stayInView';
import { useOnOpened } from '../../ui/hooks/useOnOpened';
import { signature } from '../../ui/text/signature';
import { summarize } from '../../ui/text/summary';
import { cellOf, isUnusual, lineOf } from './batches';
import type { IColumn } from './batches';

export interface IBatchRowProps {
  approval: IApproval;
  /** The number of the row, from 1, and how many there are: rows out of view are not rendered. */
  place: number;
  count: number;
  columns: readonly IColumn[];
  /** Whether the arguments are in columns. */
  hasColumns: boolean;
  isSelected: boolean;
  /** Whether the row can be selected, because a person has been shown all of it. */
  isSelectable: boolean;
  /** Whether Tab moves the focus to it. */
  isCurrent: boolean;
  isOpen: boolean;
  isBusy: boolean;
  /** Why the last answer was not accepted, or empty. */
  failure: string;
  onToggle: (id: string) => void;
  onExtend: (id: string) => void;
  onOpen: (id: string) => void;
  onFailure: (id: string, text: string, typed: string) => void;
}

/** Rendered again only if its own properties changed, because a table may have a thousand rows. */
export const BatchRow = React.memo(Row);

function Row(props: IBatchRowProps): JSX.Element {
  const trans = useTrans();
  const nameOf = useNameOf();
  const { approval, isSelected, isSelectable, isOpen } = props;
  const { id, call } = approval;
  const isPending = approval.status === 'pending';
  const card = React.useRef<HTMLDivElement>(null);
  useOnOpened(isOpen, () => {
    const staying = card.current ? stayInView(card.current) : null;
    return () => {
      staying?.dispose();
    };
  });
  const outcome = isPending ? null : summarize(approval, nameOf, trans);
  const line = signature(call.tool, call.arguments, trans).text;
  const onClick = (event: React.MouseEvent<HTMLElement>): void => {
    if (!event.nativeEvent.isTrusted || !isPending) {
      return;
    }
    // From its checkbox, the arrows and letters would lead nowhere.
    event.currentTarget.focus({ preventScroll: true });
    if (event.shiftKey) {
      props.onExtend(id);
    } else {
      props.onToggle(id);
    }
  };
  const states = [
    isSelected ? 'jp-mod-selected' : '',
    isPending ? '' : 'jp-mod-settled',
    props.isBusy ? 'jp-mod-busy' : ''
  ];
  return (
    <>
      <div
        role="row"
        aria-level={1}
        aria-posinset={props.place}
        aria-setsize={props.count}
        className={`jp-AgentBox-row ${states.join(' ')}`}
        data-row-id={id}
        tabIndex={props.isCurrent ? 0 : -1}
        aria-selected={isPending ? isSelected : undefined}
        aria-expanded={isOpen}
        aria-label={outcome ? `${line}: ${outcome.text}` : line}
        title={outcome?.text}
        onClick={onClick}
      >
        <span role="gridcell" className="jp-AgentBox-rowCheck">
          {isPending ? (
            <input
              type="checkbox"
              tabIndex={-1}
              checked={isSelected}
              disabled={!isSelectable}
              readOnly
              aria-label={trans.__('Select %1', line)}
              title={
                isPending && !isSelectable
                  ? trans.__(
                      'Open this request first: not all of its arguments are shown here.'
                    )
                  : undefined
              }
            />
          ) : (
            <span aria-hidden="true">{outcome ? SIGNS[outcome.mood] : ''}</span>
          )}
        </span>
        <Cells {...props} />
        <span role="gridcell" className="jp-AgentBox-rowOpen">
          {isPending ? (
            <button
              type="button"
              tabIndex={-1}
              className="jp-AgentBox-link"
              aria-label={
                isOpen ? trans.__('Close %1', line) : trans.__('Open %1', line)
              }
              onClick={event => {
                event.stopPropagation();
                props.onOpen(id);
              }}
            >
              {isOpen ? '▾' : '▸'}
            </button>
          ) : null}
        </span>
      </div>
      {props.failure ? (
        <div role="row" aria-level={2}>
          <div role="gridcell" className="jp-AgentBox-error">
            <span role="alert">{props.failure}</span>
          </div>
        </div>
      ) : null}
      {isPending && isOpen ? (
        <div
          ref={card}
          role="row"
          aria-level={2}
          className="jp-AgentBox-rowCard"
        >
          <div role="gridcell">
            <RequestCard
              requestId={id}
              hasLink={true}
              onFailure={(text, typed) => {
                props.onFailure(id, text, typed);
              }}
            />
          </div>
        </div>
      ) : null}
    </>
  );
}

function Cells(props: IBatchRowProps): JSX.Element {
  const trans = useTrans();
  const { approval, columns, hasColumns } = props;
  if (!hasColumns || columns.length === 0) {
    return (
      <span role="gridcell" className="jp-AgentBox-rowLine">
        <code>{lineOf(approval, columns, trans) || '()'}</code>
      </span>
    );
  }
  return (
    <>
      {columns.map(column => {
        const cell = cellOf(approval, column.name, trans);
        return (
          <span
            key={column.name}
            role="gridcell"
            className={isUnusual(approval, column) ? 'jp-mod-unusual' : ''}
            title={
              isUnusual(approval, column)
                ? trans.__('Differs from most of the other rows')
                : undefined
            }
          >
            {cell ? <code>{cell.text}</code> : <i>{trans.__('not given')}</i>}
          </span>
        );
      })}
    </>
  );
}
