/**
 * Restores a notebook's mode, its active cell and the focus after a person has answered at a card, or in the list of the panel.
 *
 * A card does not make its cell the active one (see `keepFromNotebook`), but it has the focus. Left there, or in the panel, the
 * Shift+Enter that follows a decision would run nothing, and what is typed would go nowhere.
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
import { keepInView } from './keepInView';

/** An output with the cards of requests, or of something that was blocked. */
const OUTPUT = '.jp-AgentBox-output';

const PANEL = '.jp-AgentBox-panel';

/** Where a person answers. */
const INSIDE = `${OUTPUT}, ${PANEL}`;

/** The list of pending requests in the panel. */
const LIST = '.jp-AgentBox-pending';

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
    window.addEventListener('focusout', this._onFocusOut, true);
    window.addEventListener('keydown', this._onKeyDown, true);
    window.addEventListener('keyup', this._onKeyUp, true);
    window.addEventListener(CARD_LEFT, this._onCardLeft);
  }

  /**
   * Leave a decided card, or the panel's list when nothing in it waits any more, but not before the pressed key is
   * released, which might repeat elsewhere.
   */
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
    const isList = card.matches(LIST);
    if (
      !place ||
      index === -1 ||
      !(isList ? place.notebook.isVisible : place.notebook.node.contains(card))
    ) {
      return;
    }
    const { notebook, cell, mode } = place;
    this._place = null;
    notebook.activeCellIndex = index;
    // An editor that is out of view would be scrolled to.
    notebook.mode = cell.inViewport ? mode : 'command';
    notebook.activate();
    if (isList) {
      if (notebook.mode === 'edit') {
        // The notebook gives the focus to the cell and not to its editor.
        cell.editor?.focus();
      }
      // What was put out while the person looked at the panel may have moved everything.
      void notebook.scrollToItem(index).then(() => {
        keepInView(cell.node, notebook.node);
      });
    }
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
    const wasInside = this._isInside;
    this._isInside = node.closest(INSIDE) !== null;
    if (node.closest(PANEL)) {
      this._place = wasInside ? this._place : this._currentPlace();
      return;
    }
    const notebook = this._notebooks?.find(panel =>
      panel.content.node.contains(node)
    )?.content;
    const active = notebook?.activeCell;
    if (!notebook || !active) {
      return;
    }
    if (!node.closest(OUTPUT)) {
      this._place = node.closest('.jp-Cell') ? null : this._place;
    } else if (!wasInside || !this._isStill(notebook, active)) {
      this._place = { notebook, cell: active, mode: notebook.mode };
    }
  }

  /** Whether the known place is the one that the person left. */
  private _isStill(notebook: Notebook, active: Cell): boolean {
    return this._place?.notebook === notebook && this._place.cell === active;
  }

  /** Where the person is in the notebook that was used last. */
  private _currentPlace(): IPlace | null {
    const notebook = this._notebooks?.currentWidget?.content;
    const cell = notebook?.activeCell;
    if (!notebook || !cell) {
      return null;
    }
    const hasFocus = notebook.node.contains(document.activeElement);
    const mode =
      !hasFocus && this._last?.cell === cell ? this._last.mode : notebook.mode;
    return { notebook, cell, mode };
  }

  private readonly _onPointerDown = (event: PointerEvent): void => {
    this._isByKey = false;
    this._come(event.target);
  };

  /** Remember the mode, which the notebook changes to the command mode when the focus leaves it. */
  private readonly _onFocusOut = (event: FocusEvent): void => {
    const { target } = event;
    const notebook = this._notebooks?.currentWidget?.content;
    const cell = notebook?.activeCell;
    if (notebook && cell && target instanceof Element) {
      if (notebook.node.contains(target) && !target.closest(OUTPUT)) {
        this._last = { cell, mode: notebook.mode };
      }
    }
  };

  /**
   * After a press of a pointer, the notebook moves the focus about by itself, but to no card: it is the page that does
   * that, as when somebody follows a link to a card.
   */
  private readonly _onFocusIn = (event: FocusEvent): void => {
    const { target } = event;
    if (
      this._isByKey ||
      (target instanceof Element && target.closest(INSIDE))
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
  /** Whether the person is at a card or in the panel. */
  private _isInside = false;
  /** The active cell and the mode of the notebook that the focus left last. */
  private _last: { cell: Cell; mode: NotebookMode } | null = null;
  private _left: HTMLElement | null = null;
  private _place: IPlace | null = null;
}
