/**
 * Keeps the focused element in place while content above it appears, grows or disappears.
 *
 * A browser does so by itself only if something is scrolled out at the top, and Safari not at all. A card that is moved
 * out of view accepts no keys, and a row of a long table is below many rows whose height is unknown until they are shown.
 */
import type { IDisposable } from '@lumino/disposable';

/** The anchored element: the focused row of a table, or otherwise the card. */
const KEPT = '.jp-AgentBox-row, .jp-AgentBox-historyRow, .jp-AgentBox-card';

/** Scrolls a node so that the focused row or card stays where the person last saw it. */
export class FocusAnchor implements IDisposable {
  constructor(private readonly _node: HTMLElement) {
    _node.addEventListener('focusin', this._begin);
    if (typeof ResizeObserver !== 'undefined') {
      this._observer = new ResizeObserver(() => {
        this.keep();
      });
    }
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._observer?.disconnect();
    this._node.removeEventListener('focusin', this._begin);
  }

  /** Observe the size of something in the node. */
  observe(part: Element): void {
    this._observer?.observe(part);
  }

  /** Stop observing it. */
  unobserve(part: Element): void {
    this._observer?.unobserve(part);
  }

  /** Move the row or card back to where it was, if it still has the focus and was in view. */
  keep(): void {
    const focused = this._focused();
    if (focused && focused === this._kept && this._isInView(this._offset)) {
      this._scroll(this._offsetOf(focused) - this._offset);
    }
    this._note();
  }

  /** Scroll by so many pixels and by what earlier calls left: a browser scrolls by whole pixels of the screen. */
  private _scroll(pixels: number): void {
    const wanted = this._node.scrollTop + pixels + this._left;
    this._node.scrollTop = wanted;
    const left = wanted - this._node.scrollTop;
    this._left = Math.abs(left) < 1 ? left : 0;
  }

  private _focused(): Element | null {
    const focused = document.activeElement;
    return this._node.contains(focused)
      ? (focused?.closest(KEPT) ?? null)
      : null;
  }

  /** Pixels from the top of the scrolled content, which scrolling does not change. */
  private _offsetOf(part: Element): number {
    return (
      part.getBoundingClientRect().top -
      this._node.getBoundingClientRect().top +
      this._node.scrollTop
    );
  }

  private _isInView(offset: number): boolean {
    const { scrollTop, clientHeight } = this._node;
    return (
      offset + this._height > scrollTop && offset < scrollTop + clientHeight
    );
  }

  private readonly _begin = (): void => {
    this._left = 0;
    this._note();
  };

  private _note(): void {
    this._kept = this._focused();
    if (this._kept) {
      this._offset = this._offsetOf(this._kept);
      this._height = this._kept.getBoundingClientRect().height;
    }
  }

  private _height = 0;
  private _isDisposed = false;
  private _kept: Element | null = null;
  private _left = 0;
  private _observer: ResizeObserver | null = null;
  private _offset = 0;
}
