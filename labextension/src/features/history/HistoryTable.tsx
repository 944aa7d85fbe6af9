/**
 * Calls in a table: a line for each under its day, and the cards of opened ones.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IAuditRecord } from '../../api/protocol';
import { hasNotRun, isChange } from '../../api/protocol';
import { SIGNS } from '../../ui/card/Outcome';
import { RequestCard } from '../../ui/card/RequestCard';
import { LinkButton } from '../../ui/components/VisibleText';
import { useNameOf, useTrans } from '../../ui/context';
import { ITEM_KEY, useWindow } from '../../ui/hooks/useWindow';
import type { NameOf } from '../../ui/text/reviewers';
import type { ISummary } from '../../ui/text/summary';
import { label } from '../../ui/text/visibleText';
import { localeOf } from '../../ui/text/language';
import { describeSeconds } from '../../ui/text/duration';

/** The number of characters of a call that its line shows; its card shows all of it. */
const MAX_CALL = 400;
const COLUMNS = 6;

const CLOCK: Intl.DateTimeFormatOptions = {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit'
};
const DAY: Intl.DateTimeFormatOptions = {
  weekday: 'long',
  year: 'numeric',
  month: 'long',
  day: 'numeric'
};

export interface IHistoryTableProps {
  records: readonly IAuditRecord[];
}

export function HistoryTable({ records }: IHistoryTableProps): JSX.Element {
  const trans = useTrans();
  const body = React.useRef<HTMLTableSectionElement>(null);
  const [opened, setOpened] = React.useState<ReadonlySet<string>>(new Set());
  const lines = React.useMemo(
    () => linesOf(records, opened, trans),
    [records, opened, trans]
  );
  const keys = React.useMemo(() => lines.map(({ key }) => key), [lines]);
  // An open card has a state of its own, and is as high as it is only while it is there.
  const pinned = React.useMemo(
    () => new Set([...opened].map(openKey)),
    [opened]
  );
  const toggle = React.useCallback((id: string) => {
    setOpened(before => {
      const after = new Set(before);
      if (!after.delete(id)) {
        after.add(id);
      }
      return after;
    });
  }, []);
  return (
    // The roles are named because a browser forgets them in a page that is not wide, where rows are no longer laid out
    // as those of a table.
    <table
      role="table"
      className="jp-AgentBox-historyTable"
      aria-rowcount={lines.length + 1}
    >
      <thead role="rowgroup">
        <tr role="row" aria-rowindex={1}>
          {[
            trans.__('Time'),
            trans.__('Call'),
            trans.__('Decision'),
            trans.__('Who'),
            trans.__('Ran for'),
            trans.__('Notebook')
          ].map(name => (
            <th key={name} role="columnheader" scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody ref={body} role="rowgroup">
        {useWindow(body, keys, pinned).map(part => {
          if ('height' in part) {
            return (
              <tr
                key={`gap ${part.gapBefore}`}
                role="presentation"
                className="jp-AgentBox-historyGap"
                style={{ height: part.height }}
              />
            );
          }
          const { key, day, record } = lines[part.index];
          const place = { [ITEM_KEY]: key, 'aria-rowindex': part.index + 2 };
          if (record === null) {
            return (
              <tr
                key={key}
                role="row"
                className="jp-AgentBox-historyDay"
                {...place}
              >
                <th role="rowheader" colSpan={COLUMNS} scope="row">
                  {day}
                </th>
              </tr>
            );
          }
          return key === record.id ? (
            <Row
              key={key}
              record={record}
              isOpen={opened.has(record.id)}
              onToggle={toggle}
              place={place}
            />
          ) : (
            <tr
              key={key}
              role="row"
              className="jp-AgentBox-historyOpen"
              {...place}
            >
              <td role="cell" colSpan={COLUMNS}>
                <RequestCard
                  requestId={record.id}
                  hasLink={true}
                  isCallAbove={true}
                />
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** A row of the table: the name of a day, a call, or the card of one that is open. */
interface ILine {
  key: string;
  day: string;
  record: IAuditRecord | null;
}

/** The key of the row with the card of a call. */
function openKey(id: string): string {
  return `card ${id}`;
}

/** The rows of the table, in order: the calls under their days, and the cards under their calls. */
function linesOf(
  records: readonly IAuditRecord[],
  opened: ReadonlySet<string>,
  trans: TranslationBundle
): ILine[] {
  return byDay(records, trans).flatMap(([day, ofDay]) => [
    { key: `day ${day}`, day, record: null },
    ...ofDay.flatMap(record => [
      { key: record.id, day, record },
      ...(opened.has(record.id)
        ? [{ key: openKey(record.id), day, record }]
        : [])
    ])
  ]);
}

interface IRowProps {
  record: IAuditRecord;
  isOpen: boolean;
  onToggle: (id: string) => void;
  /** The attributes that say where the row stands. */
  place: Record<string, string | number>;
}

function Row(props: IRowProps): JSX.Element {
  const trans = useTrans();
  const nameOf = useNameOf();
  const { record, isOpen } = props;
  const at = new Date(record.created_at);
  const path = record.call.notebook_path ?? '';
  const { text, mood } = resultOf(record, trans);
  return (
    <tr role="row" className="jp-AgentBox-historyRow" {...props.place}>
      <td role="cell" className="jp-AgentBox-historyTime">
        <time
          dateTime={record.created_at}
          title={at.toLocaleString(localeOf(trans))}
        >
          {at.toLocaleTimeString(localeOf(trans), CLOCK)}
        </time>
      </td>
      <td role="cell" className="jp-AgentBox-historyCall">
        <LinkButton
          label={`${label(record.call.server, 40)}.${label(record.signature, MAX_CALL)}`}
          isPressed={isOpen}
          onClick={() => {
            props.onToggle(record.id);
          }}
        />
        <Marks record={record} />
      </td>
      <td role="cell" className={`jp-AgentBox-historyResult jp-mod-${mood}`}>
        <span aria-hidden="true">{SIGNS[mood]}</span> {text}
      </td>
      <td role="cell" className="jp-AgentBox-historyWho">
        {whoOf(record, nameOf, trans)}
      </td>
      <td role="cell" className="jp-AgentBox-historyNumber">
        {record.seconds === null ? '' : describeSeconds(record.seconds, trans)}
      </td>
      <td
        role="cell"
        className="jp-AgentBox-historyNotebook"
        title={label(path, 500)}
      >
        {label(path.split('/').pop() ?? '', 60)}
      </td>
    </tr>
  );
}

/** What the call itself does not show: that a person edited it, and that its server asked something. */
function Marks({ record }: { record: IAuditRecord }): JSX.Element {
  const trans = useTrans();
  const { decision, outcome } = record;
  const questions = outcome?.questions?.length ?? 0;
  return (
    <>
      {decision?.arguments || decision?.omitted ? (
        <Mark
          text={trans.__('edited')}
          explanation={trans.__(
            'Somebody edited the arguments; this is the call that ran.'
          )}
        />
      ) : null}
      {questions > 0 ? (
        <Mark
          text={trans._n('%1 question', '%1 questions', questions)}
          explanation={trans.__('The server asked somebody during the call.')}
        />
      ) : null}
    </>
  );
}

interface IMarkProps {
  text: string;
  explanation: string;
}

function Mark({ text, explanation }: IMarkProps): JSX.Element {
  return (
    <>
      {' '}
      <span className="jp-AgentBox-historyMark" title={explanation}>
        {text}
      </span>
    </>
  );
}

/** The records of each day, in order. */
function byDay(
  records: readonly IAuditRecord[],
  trans: TranslationBundle
): readonly [string, readonly IAuditRecord[]][] {
  const days = new Map<string, IAuditRecord[]>();
  for (const record of records) {
    const day = new Date(record.created_at).toLocaleDateString(
      localeOf(trans),
      DAY
    );
    const ofDay = days.get(day) ?? [];
    days.set(day, ofDay);
    ofDay.push(record);
  }
  return [...days];
}

function whoOf(
  record: IAuditRecord,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  if (record.decision) {
    return nameOf(record.decision);
  }
  if (record.status !== 'approved' && record.status !== 'rejected') {
    return '';
  }
  const { rule } = record.evaluation;
  return rule ? trans.__('the rule “%1”', label(rule, 60)) : trans.__('a rule');
}

/** The decision and the outcome, in a word or two. */
function resultOf(record: IAuditRecord, trans: TranslationBundle): ISummary {
  switch (record.status) {
    case 'pending':
      return { text: trans.__('Waiting'), mood: 'waiting' };
    case 'rejected':
      return { text: trans.__('Rejected'), mood: 'bad' };
    case 'expired':
      return { text: trans.__('Expired'), mood: 'neutral' };
    case 'cancelled':
      return { text: trans.__('Withdrawn'), mood: 'neutral' };
    case 'orphaned':
      return { text: trans.__('Kernel ended'), mood: 'neutral' };
    case 'approved':
      return approvedResult(record, trans);
  }
}

function approvedResult(
  record: IAuditRecord,
  trans: TranslationBundle
): ISummary {
  const { call, outcome } = record;
  if (isChange(call)) {
    return { text: trans.__('Done'), mood: 'good' }; // nobody was asked
  }
  if (outcome && hasNotRun(outcome)) {
    return { text: trans.__('Allowed, not run'), mood: 'neutral' };
  }
  switch (outcome?.state) {
    case 'failed':
      return { text: trans.__('Allowed, failed'), mood: 'bad' };
    case 'cancelled':
      return { text: trans.__('Allowed, cut off'), mood: 'neutral' };
    case 'succeeded':
      return { text: trans.__('Allowed'), mood: 'good' };
    default:
      return { text: trans.__('Running'), mood: 'running' };
  }
}
