/**
 * A React hook for links to the cell of a call.
 */
import { useCallback } from 'react';

import type { IApproval } from '../../api/protocol';
import { useCardContext } from '../context';

/** Go to the card in a call's cell; if there is none, the person is told why. */
export function useGoToCell(): (approval: IApproval) => void {
  const { origins, noCard } = useCardContext();
  return useCallback(
    approval => {
      void origins.reveal(approval).then(isFound => {
        if (!isFound) {
          noCard?.(approval);
        }
      });
    },
    [origins, noCard]
  );
}
