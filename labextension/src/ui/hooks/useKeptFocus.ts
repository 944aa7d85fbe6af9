/**
 * A React hook for a node in which focused elements disappear.
 */
import { useLayoutEffect } from 'react';
import type { RefObject } from 'react';

/** Keep the focus within a node, where what had it went away: a form that is closed, a button of another rule. */
export function useKeptFocus(root: RefObject<HTMLElement>): void {
  const wasWithin = root.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (wasWithin && document.activeElement === document.body) {
      root.current?.focus({ preventScroll: true });
    }
  });
}
