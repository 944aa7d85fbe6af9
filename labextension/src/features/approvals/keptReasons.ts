/**
 * The reasons that somebody typed for rejecting several requests, for a form that goes and comes back: when a filter hides
 * its table, or its tab is dragged elsewhere.
 */
import React from 'react';

/** Reasons by the keys of the forms in which they were typed. Each list has its own. */
export type Reasons = Map<string, string>;

/** The reasons of a list. */
export const KeptReasons = React.createContext<Reasons>(new Map());

/** The reason for rejecting something, and a function that changes it; an empty one is not kept. */
export function useKeptReason(key: string): [string, (reason: string) => void] {
  const reasons = React.useContext(KeptReasons);
  const [, renderAgain] = React.useReducer((count: number) => count + 1, 0);
  const change = (reason: string): void => {
    if (reason === '') {
      reasons.delete(key);
    } else {
      reasons.set(key, reason);
    }
    renderAgain();
  };
  return [reasons.get(key) ?? '', change];
}

/** Forget all reasons but those with these keys: what the others are for is no longer there. */
export function useForgetAllBut(present: ReadonlySet<string>): void {
  const reasons = React.useContext(KeptReasons);
  React.useEffect(() => {
    for (const key of reasons.keys()) {
      if (!present.has(key)) {
        reasons.delete(key);
      }
    }
  });
}
