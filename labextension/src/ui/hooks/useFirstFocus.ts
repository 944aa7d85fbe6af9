/**
 * A React hook for the field that gets the focus when a form opens.
 */
import { useEffect, useRef } from 'react';
import type { RefObject } from 'react';

/** Focus an element when it appears, and at no later time. In a text that was kept, one goes on at its end. */
export function useFirstFocus(
  element: RefObject<HTMLElement>,
  isWanted: boolean
): void {
  const isFirst = useRef(isWanted);
  useEffect(() => {
    if (isFirst.current) {
      const node = element.current;
      node?.focus();
      if (node instanceof HTMLTextAreaElement) {
        node.setSelectionRange(node.value.length, node.value.length);
      }
    }
  }, [element]);
}
