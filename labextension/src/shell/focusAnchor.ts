/**
 * Keeps a card with the focus in its place while what stands above it comes, grows or goes.
 *
 * A browser does so by itself only where something is scrolled out at the top, and Safari not at all. A card that is moved
 * out of view takes no letters.
 */
import type { IDisposable } from '@lumino/disposable';

const CARD = '.jp-AgentBox-card';

/** Scrolls a node so that the card with the focus stays where the person last saw it. */
export class FocusAnchor implements IDisposable {
  constructor(private readonly _node: HTMLElement) {
    _node.addEventListener('scroll', this._onScroll, { passive: true });
    _node.addEventListener('focusin', this._note);
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
    this._node.removeEventListener('scroll', this._onScroll);
    this._node.removeEventListener('focusin', this._note);
  }

  /** Heed the size of something in the node. */
  observe(part: Element): void {
    this._observer?.observe(part);
  }

  /** Heed it no more. */
  unobserve(part: Element): void {
    this._observer?.unobserve(part);
  }

  /** Bring the card back to where it was, if it still has the focus. */
  keep(): void {
    const card = this._card();
    if (card && card === this._kept) {
      this._node.scrollTop += card.getBoundingClientRect().top - this._top;
    }
    this._note();
  }

  private _card(): Element | null {
    const focused = document.activeElement;
    return this._node.contains(focused)
      ? (focused?.closest(CARD) ?? null)
      : null;
  }

  private readonly _note = (): void => {
    this._kept = this._card();
    this._top = this._kept?.getBoundingClientRect().top ?? 0;
    this._scrolled = this._node.scrollTop;
  };

  /** Where the card is by now is not asked: something may have come above it since the person scrolled. */
  private readonly _onScroll = (): void => {
    const { scrollTop } = this._node;
    this._top -= scrollTop - this._scrolled;
    this._scrolled = scrollTop;
  };

  private _isDisposed = false;
  private _kept: Element | null = null;
  private _observer: ResizeObserver | null = null;
  private _scrolled = 0;
  private _top = 0;
}
