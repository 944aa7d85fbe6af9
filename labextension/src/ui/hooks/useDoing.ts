/**
 * A React hook for the action of a button.
 */
import { useCallback, useEffect, useSyncExternalStore } from 'react';

import { useDoings, useTrans } from '../context';
import { messageOf } from '../text/messages';

export interface IDoing {
  /** Perform an action; nothing while another one is in progress. */
  run: (action: () => Promise<void>) => void;
  isBusy: boolean;
  /** Why the last action failed; empty if it succeeded. */
  failure: string;
}

/**
 * Performs one action at a time, and reports why it failed. Where there is a `DoingsProvider`, what is in progress is still
 * known to a component that is mounted again with the same key.
 */
export function useDoing(key: string): IDoing {
  const trans = useTrans();
  const doings = useDoings();
  const subscribe = useCallback(
    (onChange: () => void) => {
      const slot = (_: unknown, changed: string): void => {
        if (changed === key) {
          onChange();
        }
      };
      doings.changed.connect(slot);
      return () => {
        doings.changed.disconnect(slot);
      };
    },
    [doings, key]
  );
  const { isBusy, error } = useSyncExternalStore(subscribe, () =>
    doings.stateOf(key)
  );
  useEffect(
    () => () => {
      // A failure that was shown is forgotten when its component goes.
      if (!doings.stateOf(key).isBusy) {
        doings.forget(key);
      }
    },
    [doings, key]
  );
  return {
    run: action => {
      doings.run(key, action);
    },
    isBusy,
    failure:
      error === null
        ? ''
        : messageOf(error, 300) || trans.__('That did not work.')
  };
}
