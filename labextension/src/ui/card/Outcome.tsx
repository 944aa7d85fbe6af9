/**
 * The outcome of a request in one line, the call in another, and the progress of a running call.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { useNameOf, useTrans } from '../context';
import type { IApproval, ILogMessage, IProgress } from '../../api/protocol';
import { isCodeRun, qualifiedName } from '../../api/protocol';
import { callLine } from '../text/callLine';
import type { Mood } from '../text/summary';
import { summarize } from '../text/summary';
import { label } from '../text/visibleText';
import { localeOf } from '../text/language';

/** A symbol for people who cannot distinguish the colors. */
export const SIGNS: Record<Mood, string> = {
  waiting: '●',
  running: '▶',
  good: '✓',
  bad: '✗',
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
  /** Whether the line above already shows the call. */
  isCallAbove?: boolean;
}

export function Outcome(props: IOutcomeProps): JSX.Element {
  const trans = useTrans();
  const nameOf = useNameOf();
  const { approval, isCallAbove = false } = props;
  const { mood, text } = summarize(approval, nameOf, trans);
  const progress = approval.outcome?.progress;
  const isAtTool =
    mood === 'running' && approval.outcome?.review?.status !== 'pending';
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
      {isCodeRun(approval.call) || isCallAbove ? null : (
        <code className="jp-AgentBox-outcomeCall">
          {callLine(approval, trans)}
        </code>
      )}
      <time
        dateTime={ended}
        title={new Date(ended).toLocaleString(localeOf(trans))}
      >
        {timeOf(new Date(ended), trans)}
      </time>
      {isAtTool ? <Progress progress={progress ?? null} /> : null}
      {mood === 'running' ? (
        <Messages
          server={approval.call.server}
          messages={approval.outcome?.messages ?? []}
        />
      ) : null}
    </span>
  );
}

/** The time, and the date if that is not today. */
function timeOf(time: Date, trans: TranslationBundle): string {
  const isToday = time.toDateString() === new Date().toDateString();
  return isToday
    ? time.toLocaleTimeString(localeOf(trans), CLOCK)
    : time.toLocaleString(localeOf(trans), { ...CLOCK, ...DATE });
}

/** The number of log messages that are shown. */
const MOST_MESSAGES = 3;

/** MCP's log levels that are not named. */
const USUAL_LEVELS: readonly string[] = ['debug', 'info', 'notice'];

interface IMessagesProps {
  server: string;
  messages: readonly ILogMessage[];
}

/** The server's log messages during the call; each line names the server. Not announced, because there may be many. */
function Messages(props: IMessagesProps): JSX.Element | null {
  const shown = props.messages.slice(-MOST_MESSAGES);
  return shown.length > 0 ? (
    <span className="jp-AgentBox-messages">
      {shown.map(({ level, text }, index) => (
        <span key={index}>
          <b>{label(props.server, 40)}:</b>{' '}
          {USUAL_LEVELS.includes(level) ? '' : `[${label(level, 20)}] `}
          {label(text, 200)}
        </span>
      ))}
    </span>
  ) : null;
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
      {progress ? <span>{describeProgress(progress, trans)}</span> : null}
      {message ? <span>{message}</span> : null}
    </span>
  );
}

/** From this size on, digits mean nothing to a person. */
const MOST = 1e15;

/** The progress that a tool reports: “42 of 100” if it counts, otherwise in percent. */
function describeProgress(
  { progress, total }: IProgress,
  trans: TranslationBundle
): string {
  const isCount = Number.isInteger(progress) && Math.abs(progress) < MOST;
  if (typeof total !== 'number' || total <= 0) {
    return isCount && progress > 0
      ? progress.toLocaleString(localeOf(trans))
      : '';
  }
  if (isCount && total > 1 && Number.isInteger(total) && total < MOST) {
    return trans.__(
      '%1 of %2',
      progress.toLocaleString(localeOf(trans)),
      total.toLocaleString(localeOf(trans))
    );
  }
  const percent = Math.round((100 * progress) / total);
  return trans.__('%1%', Math.max(0, Math.min(100, percent)));
}
