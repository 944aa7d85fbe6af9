/**
 * A React hook for the recorded status of an item whose output says that it is in progress.
 */
import type { ISignal } from '@lumino/signaling';
import { useEffect, useState } from 'react';

import { RequestError } from '../../api/errors';
import type {
  ICodeRun,
  ItemStatus,
  ITurn,
  IToolCallItem,
  ReadTurn
} from '../../api/threads';

/** How an item ended. */
type Ended = Exclude<ItemStatus, 'in_progress'>;

/** The output counts as outdated if the kernel has not updated it within this many milliseconds. */
export const NEWS_DELAY = 3000;

/**
 * How an item ended that its output shows as in progress, and whether that output is outdated. An output is outdated after
 * the page was reloaded or the server stopped while the item was in progress.
 *
 * The hook asks the server when the item is first shown and whenever requests change.
 */
export function useRecordedStatus(
  item: ICodeRun | IToolCallItem,
  turnId: string,
  changed: ISignal<unknown, unknown>,
  readTurn?: ReadTurn
): { status: Ended | null; isOld: boolean } {
  const [status, setStatus] = useState<Ended | null>(null);
  const [isOld, setOld] = useState(false);
  const isOpen = item.status === 'in_progress' && status === null;
  useEffect(() => {
    if (!isOpen || !readTurn || !turnId) {
      return;
    }
    let isWanted = true;
    const ask = (): void => {
      readTurn(turnId)
        .then(turn => endOf(turn, item.id))
        .catch(endOfLost)
        .then(
          ended => {
            if (isWanted) {
              setStatus(ended);
            }
          },
          () => undefined // the server is out of reach: the next change asks again
        );
    };
    ask();
    changed.connect(ask);
    return () => {
      isWanted = false;
      changed.disconnect(ask);
    };
  }, [isOpen, item.id, turnId, changed, readTurn]);
  useEffect(() => {
    const timer =
      status === null
        ? 0
        : window.setTimeout(() => {
            setOld(true);
          }, NEWS_DELAY);
    return () => {
      window.clearTimeout(timer);
    };
  }, [status]);
  return { status, isOld };
}

/** How an item of a turn ended; `null` while it is in progress. */
function endOf(turn: ITurn, itemId: string): Ended | null {
  const found = turn.items.find(({ id }) => id === itemId);
  const status = found && 'status' in found ? found.status : 'in_progress';
  if (status !== 'in_progress') {
    return status;
  }
  return turn.status === 'in_progress' ? null : 'interrupted';
}

/** A turn that was deleted is not in progress. */
function endOfLost(error: unknown): Ended | null {
  if (error instanceof RequestError && error.status === 404) {
    return 'interrupted';
  }
  throw error;
}
