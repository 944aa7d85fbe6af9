/**
 * A React hook for what has just been opened.
 */
import { useEffect, useRef } from 'react';

/** Do something each time that it is opened; what that returns is called when it is closed or goes. */
export function useOnOpened(
  isOpen: boolean,
  onOpened: () => (() => void) | undefined
): void {
  const wasOpen = useRef(isOpen);
  const latest = useRef(onOpened);
  useEffect(() => {
    latest.current = onOpened;
  });
  useEffect(() => {
    const isNew = isOpen && !wasOpen.current;
    wasOpen.current = isOpen;
    return isNew ? latest.current() : undefined;
  }, [isOpen]);
}
