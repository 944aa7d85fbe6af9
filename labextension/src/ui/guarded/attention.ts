/**
 * Tells whether a person may be about to press something in a node, so that checking it repeatedly is worthwhile.
 *
 * To look what lies over a card takes long, and most of the time nobody is near it. A node has a person's attention while
 * the focus or the pointer is in it, and for some seconds after the pointer moved anywhere: nothing is pressed without
 * that. Where a pointer does not hover, as on a touch screen, a press comes from nowhere, and every node has attention.
 */
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';

/** Milliseconds for which a moved pointer may be on its way to a button. */
const LINGER = 3000;

/** The events by which a person approaches a node. */
const EVENTS = ['pointermove', 'pointerdown', 'wheel', 'focusin'] as const;

/** Watches the one pointer and the one focus of a page. */
export class Attention {
  constructor() {
    for (const name of EVENTS) {
      // The window hears of an event before anything in the page can keep it back.
      window.addEventListener(name, this._onEvent, {
        capture: true,
        passive: true
      });
    }
  }

  /** Whether a node has a person's attention now. */
  isOn(node: Element): boolean {
    return (
      isWithoutHover() ||
      performance.now() - this._movedAt < LINGER ||
      node.contains(document.activeElement) ||
      this._isUnderPointer(node)
    );
  }

  /** Call back, once, when a node gets attention. */
  await(node: Element, onAttention: () => void): IDisposable {
    this._waiting.set(node, onAttention);
    return new DisposableDelegate(() => {
      if (this._waiting.get(node) === onAttention) {
        this._waiting.delete(node);
      }
    });
  }

  private _isUnderPointer(node: Element): boolean {
    if (!this._position) {
      return false;
    }
    const { x, y } = this._position;
    const { left, right, top, bottom } = node.getBoundingClientRect();
    return left <= x && x < right && top <= y && y < bottom;
  }

  private readonly _onEvent = (event: Event): void => {
    if (event.type !== 'focusin') {
      this._movedAt = performance.now();
    }
    if (event instanceof MouseEvent) {
      this._position = { x: event.clientX, y: event.clientY };
    }
    for (const [node, onAttention] of [...this._waiting]) {
      if (event.type !== 'focusin' || node.contains(event.target as Node)) {
        this._waiting.delete(node);
        onAttention();
      }
    }
  };

  private _movedAt = performance.now();
  private _position: { x: number; y: number } | null = null;
  private readonly _waiting = new Map<Element, () => void>();
}

function isWithoutHover(): boolean {
  return (
    typeof window.matchMedia === 'function' &&
    window.matchMedia('(hover: none)').matches
  );
}
