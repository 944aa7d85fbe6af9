/**
 * A React hook for signals.
 */
import type { ISignal } from '@lumino/signaling';
import { useEffect, useLayoutEffect, useReducer, useRef } from 'react';

/** Render again when a signal is emitted with a relevant value. */
export function useSignal<Sender, Args>(
  signal: ISignal<Sender, Args>,
  isRelevant?: (args: Args) => boolean
): void {
  const [, update] = useReducer((count: number) => count + 1, 0);
  const filter = useRef(isRelevant);
  // A render may be abandoned: what counts is the filter of the one that is shown.
  useLayoutEffect(() => {
    filter.current = isRelevant;
  });
  useEffect(() => {
    const slot = (_: Sender, args: Args): void => {
      if (filter.current?.(args) ?? true) {
        update();
      }
    };
    signal.connect(slot);
    // The signal may have been emitted between the first render and this effect.
    update();
    return () => {
      signal.disconnect(slot);
    };
  }, [signal]);
}
