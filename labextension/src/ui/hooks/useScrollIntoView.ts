/**
 * A React hook that scrolls to elements that appear below the lower edge of the window.
 */
import { useEffect, useRef } from 'react';
import type { RefObject } from 'react';

/** Scroll to an element when it appears, or to its beginning if it is longer than the window. */
export function useScrollIntoView(
  element: RefObject<HTMLElement>,
  isWanted: boolean
): void {
  const isFirst = useRef(isWanted);
  useEffect(() => {
    if (isFirst.current) {
      element.current?.scrollIntoView({ block: 'nearest' });
    }
  }, [element]);
}
