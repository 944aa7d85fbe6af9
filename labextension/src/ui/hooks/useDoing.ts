/**
 * A React hook for the action of a button.
 */
import { useState } from 'react';

import { useTrans } from '../context';
import { messageOf } from '../text/messages';

export interface IDoing {
  /** Perform an action; nothing while another one is in progress. */
  run: (action: () => Promise<void>) => void;
  isBusy: boolean;
  /** Why the last action failed; empty if it succeeded. */
  failure: string;
}

/** Performs one action at a time, and reports why it failed. */
export function useDoing(): IDoing {
  const trans = useTrans();
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState('');
  const run = (action: () => Promise<void>): void => {
    if (isBusy) {
      return;
    }
    setBusy(true);
    setFailure('');
    action()
      .catch((error: unknown) => {
        setFailure(messageOf(error, 300) || trans.__('That did not work.'));
      })
      .finally(() => {
        setBusy(false);
      });
  };
  return { run, isBusy, failure };
}
