/**
 * Distinguishes a pointer that moved to a node from a node that moved under the pointer.
 *
 * A list that grows pushes its buttons down; one of them may stop under a finger that was about to click something
 * else. Browsers say nothing reliable when that happens, so this looks from time to time at what is under a pointer
 * that rests.
 */
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';

/** Milliseconds between two checks. */
const INTERVAL = 100;

/** Watches the one pointer of a page. */
export class PointerWatch {
  /** Call back when the node moves under a resting pointer. */
  add(node: Element, onArrival: () => void): IDisposable {
    if (this._nodes.size === 0) {
      document.addEventListener('pointermove', this._onMove, {
        capture: true,
        passive: true
      });
      this._timer = window.setInterval(() => {
        this._look();
      }, INTERVAL);
    }
    this._nodes.set(node, onArrival);
    return new DisposableDelegate(() => {
      this._nodes.delete(node);
      if (this._nodes.size === 0) {
        document.removeEventListener('pointermove', this._onMove, true);
        window.clearInterval(this._timer);
      }
    });
  }

  /** Whether the node has moved under the resting pointer since the last check. */
  isNew(node: Element): boolean {
    return this._position !== null && !this._hasMoved && this._under !== node;
  }

  private _look(): void {
    const under = this._find();
    if (under && under !== this._under && !this._hasMoved) {
      this._nodes.get(under)?.();
    }
    this._under = under;
    this._hasMoved = false;
  }

  /** The watched node under the pointer. */
  private _find(): Element | null {
    if (!this._position) {
      return null;
    }
    const { x, y } = this._position;
    for (const node of this._nodes.keys()) {
      const { left, right, top, bottom } = node.getBoundingClientRect();
      if (left <= x && x < right && top <= y && y < bottom) {
        return node;
      }
    }
    return null;
  }

  private readonly _onMove = (event: PointerEvent): void => {
    this._position = { x: event.clientX, y: event.clientY };
    this._hasMoved = true;
  };

  private _hasMoved = false;
  private readonly _nodes = new Map<Element, () => void>();
  private _position: { x: number; y: number } | null = null;
  private _timer = 0;
  private _under: Element | null = null;
}
