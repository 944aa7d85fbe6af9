/**
 * How long a page waits before it asks a server again that does not answer it.
 */

/** The pause after the first refusal, in milliseconds: all polls of a page together ask at most three times within it. */
const FIRST = 60_000;

/** The longest pause. */
export const LONGEST_PAUSE = 300_000;

/** By how much of itself a pause may be longer, so that the pages of a Hub do not ask at the same time. */
const SPREAD = 0.25;

/** Return the pause after so many polls in a row that were refused, or had no answer. */
export function pauseAfter(refusals: number): number {
  const pause = FIRST * 2 ** (refusals - 1) * (1 + SPREAD * Math.random());
  return Math.min(LONGEST_PAUSE, Math.round(pause));
}
