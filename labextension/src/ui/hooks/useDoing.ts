/**
 * A React hook for what a person has done by a button.
 */
import { useState } from 'react';

import { useTrans } from '../context';
import { label } from '../text/visibleText';

export interface IDoing {
  /** Do one thing; nothing while another is being done. */
  run: (action: () => Promise<void>) => void;
  isBusy: boolean;
  /** Why the last thing was not done; empty if it was. */
  failure: string;
}

/** Does one thing at a time, and says why it was not done. */
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
        const why = error instanceof Error ? error.message : '';
        setFailure(label(why, 300) || trans.__('That did not work.'));
      })
      .finally(() => {
        setBusy(false);
      });
  };
  return { run, isBusy, failure };
}
