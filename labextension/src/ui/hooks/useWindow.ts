/**
 * A React hook that tells which items of a long list are in view or near it, so that only those need to be rendered.
 *
 * The list scrolls within its nearest ancestor that scrolls. Items that have been rendered have a measured height; for all
 * others, the mean of these heights is used.
 */
import { useCallback, useLayoutEffect, useRef, useState } from 'react';
import type { RefObject } from 'react';

/** A list of at most this many items is rendered whole, so that the browser's search finds the text of every item. */
const MAX_WHOLE = 100;

/** How many items of a longer list are rendered before it is known which are in view. */
const FIRST = 50;

/** Items that are at most this many pixels outside the view must be rendered. */
const NEAR = 300;

/** If one of those is missing, items that are at most this many pixels outside the view are rendered. */
const MARGIN = 800;

/** The height of an item, in pixels, before any has been measured. */
const USUAL_HEIGHT = 25;

/** The attribute of an item's node that has the item's key. */
export const ITEM_KEY = 'data-window-key';

/** A part of the rendered list: an item, or a gap where some are not rendered. */
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
 * Each item is a child of the list, with its key in the attribute `ITEM_KEY`. Pinned items and the item with the focus are
 * always rendered.
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
  // In an animation frame of its own: rendering changes what is in view, so this runs again.
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
    // The list moves when something above it grows.
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

/** The items of a range, the pinned items, and the gaps between them. */
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

/** The visible part of a list, in pixels from the top of the list; `null` while the list is hidden. */
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

/** The heights of items, measured where possible. */
class Heights {
  of(key: string): number {
    return this._known.get(key) ?? this._usual;
  }

  /** The same range if it includes all items near the view; otherwise a new one. */
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

  /** Measure the rendered items now and whenever their size changes. */
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
      // Hidden nodes have no height.
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
