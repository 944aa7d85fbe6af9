/**
 * How long something took, in words.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

/** A number of seconds: in milliseconds, seconds with one digit, or minutes and seconds. */
export function describeSeconds(
  seconds: number,
  trans: TranslationBundle
): string {
  if (seconds < 1) {
    return trans.__('%1 ms', Math.round(seconds * 1000));
  }
  return seconds < 60
    ? trans.__('%1 s', seconds.toFixed(1))
    : trans.__(
        '%1 min %2 s',
        Math.floor(seconds / 60),
        Math.floor(seconds % 60)
      );
}
