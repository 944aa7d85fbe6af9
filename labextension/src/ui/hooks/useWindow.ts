/**
 * A React hook that tells which items of a long list are in view or near it, so that only those need to be rendered.
 *
 * The list scrolls with what it is in. Items that were rendered once are known by their height, others by the mean of those.
 */
import { useCallback, useLayoutEffect, useRef, useState } from 'react';
import type { RefObject } from 'react';

/** Up to so many items all are rendered: then the browser finds a text in any of them. */
export const MAX_WHOLE = 100;

/** So many items of a longer list are rendered before anything is known of what is in view. */
const FIRST = 50;

/** Pixels above and below what is in view in which items are to be there at all times. */
const NEAR = 300;

/** Pixels above and below what is in view in which items are rendered when one that is near is missing. */
const MARGIN = 800;

/** The height in pixels of an item while none is known. */
const USUAL_HEIGHT = 25;

/** The attribute by which the hook knows the node of an item. */
export const ITEM_KEY = 'data-window-key';

/** What is rendered in a list: an item, or a gap in the place of some. */
export type WindowPart =
  { index: number } | { gapBefore: string; height: number };

/** Items from `first` to before `end`. */
interface IRange {
  first: number;
  end: number;
}

/**
 * The parts of a list to render, from top to bottom.
 *
 * Each item is a child of the list with its key in `ITEM_KEY`. Items that are pinned are there wherever they are; so is
 * the one with the focus.
 */
export function useWindow(
  list: RefObject<HTMLElement>,
  keys: readonly string[],
  pinned: ReadonlySet<string>
): WindowPart[] {
  const isWhole = keys.length <= MAX_WHOLE;
  const [range, setRange] = useState<IRange>({ first: 0, end: FIRST });
  const [heights] = useState(() => new Heights());
  const latest = useRef(keys);
  latest.current = keys;

  const frame = useRef(0);
  // In a frame of its own: what is rendered changes what is in view, which is looked at again.
  const look = useCallback(() => {
    if (frame.current === 0) {
      frame.current = requestAnimationFrame(() => {
        frame.current = 0;
        const view = list.current && viewOf(list.current);
        if (view) {
          setRange(before => heights.rangeIn(view, latest.current, before));
        }
      });
    }
  }, [list, heights]);

  useLayoutEffect(() => {
    const node = list.current;
    if (isWhole || !node || typeof ResizeObserver === 'undefined') {
      return;
    }
    const scroller = scrollerOf(node);
    const around = new ResizeObserver(look);
    around.observe(scroller);
    // What is above the list moves it when it grows.
    [...scroller.children].forEach(child => {
      around.observe(child);
    });
    scroller.addEventListener('scroll', look, { passive: true });
    return () => {
      around.disconnect();
      scroller.removeEventListener('scroll', look);
      heights.stop();
      cancelAnimationFrame(frame.current);
      frame.current = 0;
    };
  }, [list, heights, isWhole, look]);

  useLayoutEffect(() => {
    if (!isWhole && list.current) {
      heights.watch(list.current, look);
      look();
    }
  });

  if (isWhole) {
    return keys.map((_, index) => ({ index }));
  }
  return partsOf(keys, range, heights, withFocused(list.current, pinned));
}

/** The items of a range and those that are pinned, and the gaps between them. */
function partsOf(
  keys: readonly string[],
  range: IRange,
  heights: Heights,
  pinned: ReadonlySet<string>
): WindowPart[] {
  const parts: WindowPart[] = [];
  let height = 0;
  keys.forEach((key, index) => {
    if ((index >= range.first && index < range.end) || pinned.has(key)) {
      if (height > 0) {
        parts.push({ gapBefore: key, height });
        height = 0;
      }
      parts.push({ index });
    } else {
      height += heights.of(key);
    }
  });
  return height > 0 ? [...parts, { gapBefore: '', height }] : parts;
}

function withFocused(
  list: HTMLElement | null,
  pinned: ReadonlySet<string>
): ReadonlySet<string> {
  const { activeElement } = document;
  const key = list?.contains(activeElement)
    ? activeElement?.closest(`[${ITEM_KEY}]`)?.getAttribute(ITEM_KEY)
    : null;
  return key ? new Set([...pinned, key]) : pinned;
}

/** The part of a list that its scrolling box shows, in pixels from its top; `null` while none is shown. */
function viewOf(list: HTMLElement): { top: number; bottom: number } | null {
  const scroller = scrollerOf(list);
  if (scroller.clientHeight === 0) {
    return null;
  }
  const top =
    scroller.getBoundingClientRect().top - list.getBoundingClientRect().top;
  return { top, bottom: top + scroller.clientHeight };
}

function scrollerOf(node: HTMLElement): Element {
  for (let at = node.parentElement; at; at = at.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(at).overflowY)) {
      return at;
    }
  }
  return document.documentElement;
}

/** How high items are, as far as that is known. */
class Heights {
  of(key: string): number {
    return this._known.get(key) ?? this._usual;
  }

  /** The range if it has all that is near what is in view, or else another one. */
  rangeIn(
    { top, bottom }: { top: number; bottom: number },
    keys: readonly string[],
    before: IRange
  ): IRange {
    const near = this._between(top - NEAR, bottom + NEAR, keys);
    return before.first <= near.first && near.end <= before.end
      ? before
      : this._between(top - MARGIN, bottom + MARGIN, keys);
  }

  /** Measure the items that are rendered, now and when they change. */
  watch(list: HTMLElement, onChange: () => void): void {
    if (typeof ResizeObserver === 'undefined') {
      return;
    }
    this._observer ??= new ResizeObserver(entries => {
      this._measure(entries.map(({ target }) => target));
      onChange();
    });
    const present = new Set([...list.children].filter(keyOf));
    for (const node of this._watched) {
      if (!present.has(node)) {
        this._observer.unobserve(node);
        this._watched.delete(node);
      }
    }
    for (const node of present) {
      if (!this._watched.has(node)) {
        this._observer.observe(node);
        this._watched.add(node);
      }
    }
  }

  stop(): void {
    this._observer?.disconnect();
    this._observer = null;
    this._watched.clear();
  }

  private _measure(nodes: readonly Element[]): void {
    for (const node of nodes) {
      const height = node.getBoundingClientRect().height;
      // What is not shown has no height, which says nothing.
      if (height > 0) {
        this._known.set(keyOf(node), height);
      }
    }
    const all = [...this._known.values()];
    if (all.length > 0) {
      this._usual = all.reduce((sum, each) => sum + each, 0) / all.length;
    }
  }

  private _between(
    top: number,
    bottom: number,
    keys: readonly string[]
  ): IRange {
    let first = 0;
    let at = 0;
    while (first < keys.length && at + this.of(keys[first]) <= top) {
      at += this.of(keys[first]);
      first += 1;
    }
    let end = first;
    while (end < keys.length && at < bottom) {
      at += this.of(keys[end]);
      end += 1;
    }
    return { first, end };
  }

  private readonly _known = new Map<string, number>();
  private _observer: ResizeObserver | null = null;
  private _usual = USUAL_HEIGHT;
  private readonly _watched = new Set<Element>();
}

function keyOf(node: Element): string {
  return node.getAttribute(ITEM_KEY) ?? '';
}
