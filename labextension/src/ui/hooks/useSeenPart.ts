/**
 * A React hook that tells how much of a scrolling box has been in view.
 */
import { useCallback, useLayoutEffect, useState } from 'react';
import type { RefObject } from 'react';

/** Browsers round these lengths, so that a box may not scroll quite to its end; in pixels. */
const ROUNDING = 2;

/** The columns of a box, each of which may have been in view down to another place. */
const COLUMNS = 16;

const NOTHING: readonly number[] = Array<number>(COLUMNS).fill(0);
const ALL: readonly number[] = Array<number>(COLUMNS).fill(1);

export interface ISeenPartOptions {
  /** What the box shows. Nothing of a new text has been in view. */
  text: string;
  /** Whether the box has been filled. */
  isFilled: boolean;
  /** Whether the box has been opened, so that it shows all of its content without scrolling. */
  isOpen?: boolean;
}

/**
 * The part of a box, from its beginning, that has been in view: from 0 to 1. A box that is hidden, for example in another
 * tab, is not in view. One that is wider than its view must have been scrolled to its end in both directions.
 *
 * The second value is the handler for the box's scroll event.
 */
export function useSeenPart(
  box: RefObject<HTMLElement>,
  { text, isFilled, isOpen = false }: ISeenPartOptions
): [part: number, onScroll: () => void] {
  const [seen, setSeen] = useState({ text, columns: NOTHING });
  const look = useCallback(() => {
    const inView =
      box.current && isFilled ? columnsInView(box.current) : NOTHING;
    const columns = isOpen && inView.some(Boolean) ? ALL : inView;
    setSeen(before => {
      const known = before.text === text ? before.columns : NOTHING;
      const now = known.map((part, index) => Math.max(part, columns[index]));
      return before.text === text && sum(now) === sum(known)
        ? before
        : { text, columns: now };
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
  return [seen.text === text ? sum(seen.columns) / COLUMNS : 0, look];
}

/** The part of each column down to the lower edge of the box's view; all of it where the page has no layout. */
function columnsInView(box: HTMLElement): readonly number[] {
  if (typeof ResizeObserver === 'undefined') {
    return ALL;
  }
  const { scrollTop, clientHeight, scrollHeight, clientWidth, scrollWidth } =
    box;
  if (clientHeight === 0) {
    return NOTHING;
  }
  const bottom = scrollTop + clientHeight;
  const part = bottom + ROUNDING >= scrollHeight ? 1 : bottom / scrollHeight;
  const start = Math.abs(box.scrollLeft); // negative where a text runs from right to left
  const end = start + clientWidth + ROUNDING;
  return ALL.map((_, index) => {
    const edge = ((index + 1) / COLUMNS) * scrollWidth;
    return edge >= start && edge <= end ? part : 0;
  });
}

function sum(parts: readonly number[]): number {
  return parts.reduce((total, part) => total + part, 0);
}
