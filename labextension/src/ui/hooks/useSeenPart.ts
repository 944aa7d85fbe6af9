/**
 * A React hook that tells how much of a scrolling box has been in view.
 */
import { useCallback, useLayoutEffect, useState } from 'react';
import type { RefObject } from 'react';

/** Browsers round these lengths, so that a box may not scroll quite to its end; in pixels. */
const ROUNDING = 2;

export interface ISeenPartOptions {
  /** What the box shows. Nothing of a new text has been in view. */
  text: string;
  /** Whether the box has been filled. */
  isFilled: boolean;
  /** Whether the box shows its whole content without scrolling. */
  isOpen: boolean;
}

/**
 * The part of a box, from its beginning, that has been in view: from 0 to 1. A box that is hidden, for example in another
 * tab, is not in view.
 *
 * The second value is the handler for the box's scroll event.
 */
export function useSeenPart(
  box: RefObject<HTMLElement>,
  { text, isFilled, isOpen }: ISeenPartOptions
): [part: number, onScroll: () => void] {
  const [seen, setSeen] = useState({ text, part: 0 });
  const look = useCallback(() => {
    const part = box.current && isFilled ? partInView(box.current) : 0;
    setSeen(before => {
      const known = before.text === text ? before.part : 0;
      const now = Math.max(known, isOpen && part > 0 ? 1 : part);
      return now === known && before.text === text
        ? before
        : { text, part: now };
    });
  }, [box, text, isFilled, isOpen]);
  useLayoutEffect(() => {
    look();
    if (typeof ResizeObserver === 'undefined' || !box.current) {
      return;
    }
    const observer = new ResizeObserver(look);
    observer.observe(box.current);
    return () => {
      observer.disconnect();
    };
  }, [look, box]);
  return [seen.text === text ? seen.part : 0, look];
}

/** The part of a box down to the lower edge of its view; all of it where the page has no layout. */
function partInView(box: HTMLElement): number {
  if (typeof ResizeObserver === 'undefined') {
    return 1;
  }
  const { scrollTop, clientHeight, scrollHeight } = box;
  if (clientHeight === 0) {
    return 0;
  }
  const bottom = scrollTop + clientHeight;
  return bottom + ROUNDING >= scrollHeight ? 1 : bottom / scrollHeight;
}
