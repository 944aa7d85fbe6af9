/**
 * A React hook that keeps in view what somebody has just opened.
 */
import { useEffect, useRef } from 'react';
import type { RefObject } from 'react';

import { stayInView } from '../guarded/stayInView';

/** Scroll to a node when it is opened; if `onlyFocused`, only while it has the focus. */
export function useOpenedInView(
  node: RefObject<HTMLElement>,
  isOpen: boolean,
  onlyFocused = false
): void {
  const wasOpen = useRef(isOpen);
  useEffect(() => {
    const isNew = isOpen && !wasOpen.current;
    wasOpen.current = isOpen;
    const opened = node.current;
    const isMeant =
      !onlyFocused || (opened?.contains(document.activeElement) ?? false);
    const staying = isNew && isMeant && opened ? stayInView(opened) : null;
    return () => {
      staying?.dispose();
    };
  }, [node, isOpen, onlyFocused]);
}
