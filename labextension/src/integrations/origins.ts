/**
 * Finds the cell or console that a request came from.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { Cell, ICodeCellModel } from '@jupyterlab/cells';
import type { ConsolePanel, IConsoleTracker } from '@jupyterlab/console';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import { CARD_MIME_TYPE } from '../api/protocol';
import type { IApproval } from '../api/protocol';
import type { IOriginCell, IOrigins, Place } from '../internalTokens';
import { OriginCell } from './originCell';
import { withFocusToFollow } from '../ui/guarded/keyGuard';
import { stayInView } from '../ui/guarded/stayInView';
import { visibleHeight } from '../ui/guarded/visibleHeight';
import { label, tail } from '../ui/text/visibleText';
import { isRenderedCard } from '../ui/guarded/renderedCards';

/** What JupyterLab calls the session of a console, in place of a notebook's path: there is no such file. */
const CONSOLE = /(^|\/)console-\d+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Where `Origins` looks; what an application does not have is `null`. */
export interface IOriginsOptions {
  shell: JupyterFrontEnd.IShell;
  docManager: IDocumentManager | null;
  notebooks: INotebookTracker | null;
  consoles: IConsoleTracker | null;
  trans: TranslationBundle;
}

/** See `IOrigins`. */
export class Origins implements IOrigins {
  constructor(private readonly _options: IOriginsOptions) {
    const { notebooks, consoles } = _options;
    const follow = (panel: NotebookPanel): void => {
      panel.sessionContext.kernelChanged.connect(() => {
        this._kernelsChanged.emit();
      });
      this._awaitEnd(panel);
    };
    notebooks?.forEach(follow);
    notebooks?.widgetAdded.connect((_, panel) => {
      follow(panel);
    });
    consoles?.forEach(panel => {
      this._awaitEnd(panel);
    });
    consoles?.widgetAdded.connect((_, panel) => {
      this._awaitEnd(panel);
    });
  }

  get closed(): ISignal<IOrigins, void> {
    return this._closed;
  }

  get kernelsChanged(): ISignal<IOrigins, void> {
    return this._kernelsChanged;
  }

  isOpen({ call }: IApproval): boolean {
    return Boolean(this._console(call) ?? this._notebook(call));
  }

  hasPlace(approval: IApproval): boolean {
    const { notebook_path: path } = approval.call;
    return this.isOpen(approval) || (path !== null && !CONSOLE.test(path));
  }

  isInView(approval: IApproval, questionId?: string): boolean {
    if (document.visibilityState !== 'visible') {
      return false;
    }
    const console = this._console(approval.call);
    if (console) {
      const card = cardIn(console.node, approval, questionId);
      return console.isVisible && (card === null || isSeen(card));
    }
    const panel = this._notebook(approval.call);
    const cell = panel && this._cell(panel, approval);
    if (!panel?.isVisible || !cell) {
      return false;
    }
    const card = cardIn(cell.node, approval, questionId);
    return card ? isSeen(card) : visibleHeight(cell.node) > 0;
  }

  describe(approval: IApproval): string {
    const { trans } = this._options;
    const path = approval.call.notebook_path;
    if (this._console(approval.call)) {
      return trans.__('a console');
    }
    if (path === null) {
      return approval.call.kernel_id === null
        ? trans.__('outside a notebook')
        : trans.__('code outside a notebook');
    }
    const panel = this._notebook(approval.call);
    const cell = panel && this._cell(panel, approval);
    if (!panel || !cell) {
      return label(path);
    }
    const number = panel.content.widgets.indexOf(cell) + 1;
    return trans.__('%1, cell %2', label(path), number);
  }

  cellOf(approval: IApproval): IOriginCell | null {
    const panel = this._notebook(approval.call);
    // A notebook with the same path but another kernel may be a different notebook.
    const { kernel_id: kernel } = approval.call;
    if (
      kernel === null ||
      panel?.sessionContext.session?.kernel?.id !== kernel
    ) {
      return null;
    }
    const cell = this._cell(panel, approval);
    const isOnly =
      panel.content.widgets.filter(({ model }) => model.id === cell?.model.id)
        .length === 1;
    return isOnly && cell?.model.type === 'code'
      ? new OriginCell(cell.model, panel.content.model?.readOnly ?? true)
      : null;
  }

  reveal(approval: IApproval, questionId?: string): Promise<boolean> {
    return withFocusToFollow(() => this._reveal(approval, questionId));
  }

  describePlace(place: Place, length: number): string {
    const { trans } = this._options;
    if (this._console(place)) {
      return trans.__('a console');
    }
    const path = this._notebook(place)?.context.localPath;
    const known = place.notebook_path ?? path;
    return known ? tail(known, length) : trans.__('a notebook');
  }

  async revealPlace(place: Place): Promise<boolean> {
    const { shell, docManager } = this._options;
    const console = this._console(place);
    if (console) {
      shell.activateById(console.id);
      return true;
    }
    const path = place.notebook_path;
    if (!this._notebook(place) && path !== null) {
      const opened = docManager?.openOrReveal(path);
      // Notebook 7 opens a new page, and its widget is not in this page.
      await opened?.revealed;
    }
    const panel = this._notebook(place);
    if (!panel) {
      return false;
    }
    shell.activateById(panel.id);
    await panel.revealed;
    return true;
  }

  private async _reveal(
    approval: IApproval,
    questionId?: string
  ): Promise<boolean> {
    const wasOpen = this._notebook(approval.call) !== undefined;
    if (!(await this.revealPlace(approval.call))) {
      return false;
    }
    const console = this._console(approval.call);
    if (console) {
      return cardIn(console.node, approval, questionId) !== null;
    }
    const panel = this._notebook(approval.call);
    const find = (node: HTMLElement): HTMLElement | null =>
      cardIn(node, approval, questionId);
    const isAnswered = approval.status !== 'pending' && !questionId;
    const becomesActive = !wasOpen || isAnswered;
    return panel
      ? this._goToCell(panel, approval, { find, becomesActive })
      : false;
  }

  private async _goToCell(
    panel: NotebookPanel,
    approval: IApproval,
    { find, becomesActive }: IGoing
  ): Promise<boolean> {
    const cell = this._cell(panel, approval);
    if (!cell) {
      return false;
    }
    const { content } = panel;
    content.deselectAll();
    const index = content.widgets.indexOf(cell);
    // A person who goes to a card returns to their cell after answering, so that cell stays the active one.
    if (becomesActive) {
      content.activeCellIndex = index;
      content.mode = 'command';
    }
    await content.scrollToItem(index, 'smart');
    const card = find(cell.node) ?? (await awaitCard(cell, approval, find));
    if (!card) {
      content.activeCellIndex = index;
      content.mode = 'command';
      content.activate();
      return false;
    }
    card.focus({ preventScroll: true });
    this._staying?.dispose();
    this._staying = stayInView(card, true);
    return true;
  }

  private _cell(panel: NotebookPanel, approval: IApproval): Cell | undefined {
    const id = approval.call.cell_id;
    return panel.content.widgets.find(cell => cell.model.id === id);
  }

  private _console(place: Place): ConsolePanel | undefined {
    const id = place.kernel_id;
    return this._options.consoles?.find(
      panel => id !== null && panel.sessionContext.session?.kernel?.id === id
    );
  }

  private _notebook(place: Place): NotebookPanel | undefined {
    const { notebooks, docManager } = this._options;
    const { kernel_id: kernel, notebook_path: path } = place;
    const contents = docManager?.services.contents;
    const localPath = (panel: NotebookPanel): string =>
      contents?.localPath(panel.context.path) ?? panel.context.path;
    return (
      notebooks?.find(panel => path !== null && localPath(panel) === path) ??
      notebooks?.find(
        panel =>
          kernel !== null && panel.sessionContext.session?.kernel?.id === kernel
      )
    );
  }

  private _awaitEnd(panel: NotebookPanel | ConsolePanel): void {
    panel.disposed.connect(() => {
      this._closed.emit();
    });
  }

  private readonly _closed = new Signal<IOrigins, void>(this);
  private readonly _kernelsChanged = new Signal<IOrigins, void>(this);
  /** Keeps the card that was gone to last in view. */
  private _staying: IDisposable | null = null;
}

/** Milliseconds between two looks for a card that is not rendered yet, and the maximum number of looks. */
const LOOK_INTERVAL = 100;
const MOST_LOOKS = 20;

/** Wait for the card of a request whose output is in a cell, but is not rendered yet, as after a reload. */
async function awaitCard(
  cell: Cell,
  { id }: IApproval,
  find: IGoing['find']
): Promise<HTMLElement | null> {
  const { outputs } = cell.model as Partial<ICodeCellModel>;
  const isOutput = outputs
    ?.toJSON()
    .some(({ data }) =>
      JSON.stringify(Object(data)[CARD_MIME_TYPE] ?? '').includes(id)
    );
  // Of many requests, only some have cards.
  const hasCards = (): boolean =>
    cell.node.querySelector('.jp-AgentBox-card[data-request-id]') !== null;
  for (let looks = 0; isOutput && looks < MOST_LOOKS && !hasCards(); looks++) {
    await new Promise(resolve => {
      window.setTimeout(resolve, LOOK_INTERVAL);
    });
  }
  return find(cell.node);
}

/** How to go to a cell. */
interface IGoing {
  /** The card in the cell that gets the focus. */
  find: (node: HTMLElement) => HTMLElement | null;
  /** Whether the cell becomes the active one. */
  becomesActive: boolean;
}

/** The card of a request, or of a question about its call, inside a node. */
function cardIn(
  node: HTMLElement,
  approval: IApproval,
  questionId?: string
): HTMLElement | null {
  const mark = questionId
    ? `[data-question-id="${CSS.escape(questionId)}"]`
    : `[data-request-id="${CSS.escape(approval.id)}"]`;
  const cards = node.querySelectorAll<HTMLElement>(`.jp-AgentBox-card${mark}`);
  return [...cards].find(isRenderedCard) ?? null;
}

/**
 * Whether somebody who looks at a card could decide it: its buttons are in view, or they are in the middle of it, as in a long form.
 * Of a card without buttons any part will do.
 */
function isSeen(card: HTMLElement): boolean {
  const buttons = card.querySelector('.jp-AgentBox-buttons');
  if (!buttons || card.contains(document.activeElement)) {
    return visibleHeight(card) > 0;
  }
  const { height } = buttons.getBoundingClientRect();
  return height > 0 && visibleHeight(buttons) > height - 1;
}
