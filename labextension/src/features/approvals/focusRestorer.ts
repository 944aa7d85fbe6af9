/**
 * Restores a notebook's active cell and the focus after a person has answered at a card.
 *
 * A click on a card, or a key that moves the focus to it, makes the cell above it the active one. Left like that, the
 * Shift+Enter that follows a decision would run the cell with the tool call again, and not the cell after it.
 */
import type { Cell } from '@jupyterlab/cells';
import type { ConsolePanel } from '@jupyterlab/console';
import type {
  Notebook,
  NotebookMode,
  NotebookPanel
} from '@jupyterlab/notebook';
import type { IWidgetTracker } from '@jupyterlab/apputils';

import { CARD_LEFT } from '../../ui/card/cardLeft';

/** A card of a request, or of an output that was blocked. */
const CARD_IN_OUTPUT = '.jp-AgentBox-output .jp-AgentBox-card';

/** The person's previous position. */
interface IPlace {
  notebook: Notebook;
  cell: Cell;
  mode: NotebookMode;
}

/** Remembers where a person was before they went to a card. It lives as long as the page. */
export class FocusRestorer {
  constructor(
    private readonly _notebooks: IWidgetTracker<NotebookPanel> | null,
    private readonly _consoles: IWidgetTracker<ConsolePanel> | null
  ) {
    // In the capture phase of the window all this is seen before the notebook acts on it.
    window.addEventListener('pointerdown', this._onPointerDown, true);
    window.addEventListener('focusin', this._onFocusIn, true);
    window.addEventListener('keydown', this._onKeyDown, true);
    window.addEventListener('keyup', this._onKeyUp, true);
    window.addEventListener(CARD_LEFT, this._onCardLeft);
  }

  /** Leave a decided card, but not before the pressed key is released, which might repeat elsewhere. */
  leave(card: HTMLElement): void {
    if (this._heldKey === null) {
      this._restore(card);
    } else {
      this._left = card;
    }
  }

  private _restore(card: HTMLElement): void {
    const console = this._consoles?.find(panel => panel.node.contains(card));
    if (console) {
      console.activate();
      return;
    }
    const place = this._place;
    const index = place?.notebook.widgets.indexOf(place.cell) ?? -1;
    if (!place?.notebook.node.contains(card) || index === -1) {
      return;
    }
    const { notebook, cell, mode } = place;
    this._place = null;
    notebook.activeCellIndex = index;
    // An editor that is out of view would be scrolled to.
    notebook.mode = cell.inViewport ? mode : 'command';
    notebook.activate();
    if (card.contains(document.activeElement)) {
      // The card is under the active cell itself, in which the notebook leaves the focus where it is.
      cell.node.focus({ preventScroll: true });
    }
  }

  /** Remember the position, unless the person came from another card: then it is already known. */
  private _come(node: EventTarget | null): void {
    if (!(node instanceof Element)) {
      return;
    }
    const notebook = this._notebooks?.find(panel =>
      panel.content.node.contains(node)
    )?.content;
    const active = notebook?.activeCell;
    if (!notebook || !active) {
      return;
    }
    if (!node.closest(CARD_IN_OUTPUT)) {
      this._place = node.closest('.jp-Cell') ? null : this._place;
    } else if (!this._place || !active.node.contains(node)) {
      this._place = { notebook, cell: active, mode: notebook.mode };
    }
  }

  private readonly _onPointerDown = (event: PointerEvent): void => {
    this._isByKey = false;
    this._come(event.target);
  };

  /**
   * After a press of a pointer, the notebook moves the focus about by itself, but to no card: it is the page that does
   * that, as when somebody follows a link to a card.
   */
  private readonly _onFocusIn = (event: FocusEvent): void => {
    const { target } = event;
    if (
      this._isByKey ||
      (target instanceof Element && target.closest(CARD_IN_OUTPUT))
    ) {
      this._come(target);
    }
  };

  private readonly _onCardLeft = (event: Event): void => {
    if (event.target instanceof HTMLElement) {
      this.leave(event.target);
    }
  };

  private readonly _onKeyDown = (event: KeyboardEvent): void => {
    this._isByKey = true;
    this._heldKey = event.code;
  };

  private readonly _onKeyUp = (event: KeyboardEvent): void => {
    if (event.code !== this._heldKey) {
      return;
    }
    this._heldKey = null;
    const card = this._left;
    this._left = null;
    const focused = document.activeElement;
    // A card that is gone has left the focus to what it was in.
    if (card && (card.contains(focused) || focused?.contains(card))) {
      this._restore(card);
    }
  };

  private _heldKey: string | null = null;
  private _isByKey = false;
  private _left: HTMLElement | null = null;
  private _place: IPlace | null = null;
}
