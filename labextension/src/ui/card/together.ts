/**
 * Leads from one of a cell's many requests to where they can be decided together.
 */
import React from 'react';

import { useStepLetter } from '../guarded/cardKeys';

/** Goes there; `null` if a request is decided on its own. */
export const Together = React.createContext<(() => void) | null>(null);

/** Bind the letter T of a card to go there. */
export function useTogetherLetter(): void {
  useStepLetter('T', React.useContext(Together));
}
