/**
 * A React hook that keeps the focus within a node when the focused element disappears.
 */
import { useLayoutEffect } from 'react';
import type { RefObject } from 'react';

/** Keep the focus within a node when the focused element is removed, for example because a form closes. */
export function useKeptFocus(root: RefObject<HTMLElement>): void {
  const wasWithin = root.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (wasWithin && document.activeElement === document.body) {
      root.current?.focus({ preventScroll: true });
    }
  });
}
