/**
 * What became of a request: one line, and the progress of a running call.
 */
import React from 'react';

import { useNameOf, useTrans } from '../context';
import type { IApproval, IProgress } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';
import type { Mood } from '../text/summary';
import { summarize } from '../text/summary';
import { label } from '../text/visibleText';

/** A sign for people who do not tell the colours apart. */
export const SIGNS: Record<Mood, string> = {
  waiting: '●',
  running: '▶',
  good: '✓',
  bad: '✕',
  neutral: '–'
};

const CLOCK: Intl.DateTimeFormatOptions = {
  hour: '2-digit',
  minute: '2-digit'
};

const DATE: Intl.DateTimeFormatOptions = {
  year: 'numeric',
  month: 'short',
  day: 'numeric'
};

export interface IOutcomeProps {
  approval: IApproval;
}

export function Outcome({ approval }: IOutcomeProps): JSX.Element {
  const trans = useTrans();
  const nameOf = useNameOf();
  const { mood, text } = summarize(approval, nameOf, trans);
  const progress = approval.outcome?.progress;
  const ended =
    approval.ended_at ??
    approval.outcome?.finished_at ??
    approval.decision?.decided_at ??
    approval.created_at;
  return (
    <span className="jp-AgentBox-outcome">
      <span className="jp-AgentBox-sign" aria-hidden="true">
        {SIGNS[mood]}
      </span>
      <span className="jp-AgentBox-outcomeText" role="status">
        <span className="jp-AgentBox-name">
          {label(qualifiedName(approval.call))}
        </span>{' '}
        <span>{text}</span>
      </span>
      <time dateTime={ended} title={new Date(ended).toLocaleString()}>
        {timeOf(new Date(ended))}
      </time>
      {mood === 'running' ? <Progress progress={progress ?? null} /> : null}
    </span>
  );
}

/** The time, and the date if that is not today. */
function timeOf(time: Date): string {
  const isToday = time.toDateString() === new Date().toDateString();
  return isToday
    ? time.toLocaleTimeString([], CLOCK)
    : time.toLocaleString([], { ...CLOCK, ...DATE });
}

interface IProgressProps {
  progress: IProgress | null;
}

function Progress({ progress }: IProgressProps): JSX.Element {
  const trans = useTrans();
  const total = progress?.total;
  const isKnown = progress !== null && typeof total === 'number' && total > 0;
  const message = label(progress?.message ?? '', 200);
  return (
    <span className="jp-AgentBox-progress">
      {isKnown ? (
        <progress
          aria-label={trans.__('Progress')}
          value={Math.min(progress.progress, total)}
          max={total}
        />
      ) : (
        <progress aria-label={trans.__('Progress')} />
      )}
      {isKnown ? (
        <span>
          {trans.__(
            '%1%',
            Math.min(100, Math.round((100 * progress.progress) / total))
          )}
        </span>
      ) : null}
      {message ? <span>{message}</span> : null}
    </span>
  );
}
