/**
 * A React hook for what opens below the edge of the window.
 */
import { useEffect, useRef } from 'react';
import type { RefObject } from 'react';

/** Bring an element into view when it appears; of what is longer than the window, the beginning. */
export function useInView(
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
