/**
 * The time left to decide.
 */
import React from 'react';

import { useTrans } from '../context';
import { LinkButton } from '../components/VisibleText';
import { useKeptFocus } from '../hooks/useKeptFocus';
import { useIsInView, useTick } from '../hooks/useTick';
import { localeOf } from '../text/language';

/** Seconds below which the time counts as short. */
const SHORT = 60;

/** Seconds below which the time can be extended. */
export const OFFERED = 120;

/** Seconds after which the time is shown anew while more than `OFFERED` are left: each time, the page draws a frame. */
const STEP = 5;

export interface ICountdownProps {
  expiresAt: string;
  now: () => number;
  /** Extends the request's waiting time; returns whether it did. */
  onExtend?: () => Promise<boolean>;
}

/**
 * Counts down in minutes and seconds, in steps of a few seconds at first; not announced, because a screen reader would
 * read out every second.
 */
export function Countdown(props: ICountdownProps): JSX.Element {
  const trans = useTrans();
  const { expiresAt, now, onExtend } = props;
  const [isLast, setLast] = React.useState(false);
  const root = React.useRef<HTMLSpanElement>(null);
  useKeptFocus(root);
  const face = React.useRef<HTMLSpanElement>(null);
  const seconds = Math.max(
    0,
    Math.ceil((Date.parse(expiresAt) - now()) / 1000)
  );
  useTick(useIsInView(face), seconds > OFFERED + STEP ? STEP : 1);
  const text = clock(seconds);
  const extend = (): void => {
    void onExtend?.().then(isLonger => {
      setLast(!isLonger);
    });
  };
  const clockFace = (
    <span
      ref={face}
      className={`jp-AgentBox-countdown${seconds <= SHORT ? ' jp-mod-short' : ''}`}
      role="timer"
      aria-live="off"
      title={trans.__(
        'The request expires at %1',
        new Date(expiresAt).toLocaleTimeString(localeOf(trans))
      )}
    >
      {seconds > 0 ? trans.__('%1 left', text) : trans.__('Expiring…')}
    </span>
  );
  const isOffered = seconds <= OFFERED && seconds > 0;
  const keep = trans.__('Keep waiting');
  const last = trans.__('Cannot wait longer.');
  return (
    <span ref={root} className="jp-AgentBox-waiting" tabIndex={-1}>
      {onExtend ? (
        <span className="jp-AgentBox-offer">
          <Room texts={[keep, last]} />
          {isOffered && isLast ? <span>{last}</span> : null}
          {isOffered && !isLast ? (
            <LinkButton label={keep} onClick={extend} />
          ) : null}
        </span>
      ) : null}
      {clockFace}
    </span>
  );
}

/** Room for each of these texts: nothing moves under a person's hand when one appears. Nobody sees or hears it. */
function Room(props: { texts: readonly string[] }): JSX.Element {
  return (
    <>
      {props.texts.map(text => (
        <span key={text} className="jp-AgentBox-room" data-room={text} />
      ))}
    </>
  );
}

/** Seconds as h:mm:ss or m:ss. */
export function clock(seconds: number): string {
  const pad = (value: number): string => String(value).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  return hours > 0
    ? `${hours}:${pad(minutes % 60)}:${pad(seconds % 60)}`
    : `${minutes}:${pad(seconds % 60)}`;
}
