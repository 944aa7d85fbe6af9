/**
 * The time that is left to decide.
 */
import React from 'react';

import { useTrans } from '../context';
import { useTick } from '../hooks/useSignal';

/** Seconds from which on the time is short. */
const SHORT = 60;

export interface ICountdownProps {
  expiresAt: string;
  now: () => number;
}

/** Counts down in minutes and seconds; not announced, or a screen reader would count along. */
export function Countdown(props: ICountdownProps): JSX.Element {
  const trans = useTrans();
  const { expiresAt, now } = props;
  useTick(true);
  const seconds = Math.max(
    0,
    Math.ceil((Date.parse(expiresAt) - now()) / 1000)
  );
  const text = clock(seconds);
  return (
    <span
      className={`jp-AgentBox-countdown${seconds <= SHORT ? ' jp-mod-short' : ''}`}
      role="timer"
      aria-live="off"
      title={trans.__(
        'The request expires at %1',
        new Date(expiresAt).toLocaleTimeString()
      )}
    >
      {seconds > 0 ? trans.__('%1 left', text) : trans.__('Expiring…')}
    </span>
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
