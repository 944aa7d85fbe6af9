/**
 * The way from one of many requests of a cell to where they can be decided together.
 */
import React from 'react';

import { useStepLetter } from '../guarded/cardKeys';

/** Goes there; `null` where a request is decided by itself. */
export const Together = React.createContext<(() => void) | null>(null);

/** Have the letter T of a card go there. */
export function useTogetherLetter(): void {
  useStepLetter('T', React.useContext(Together));
}
