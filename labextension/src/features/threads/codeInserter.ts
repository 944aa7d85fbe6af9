/**
 * Inserts the code that an agent ran into a notebook as cells, so that the notebook runs without the agent.
 */
import type { Cell, ICodeCellModel } from '@jupyterlab/cells';
import type {
  INotebookModel,
  INotebookTracker,
  NotebookPanel
} from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IAgentBoxClient } from '../../api/client';
import { ITEM_MIME_TYPE, readItem } from '../../api/threads';
import type { ITurn } from '../../api/threads';
import type { ICodeInserter } from '../../internalTokens';
import { label } from '../../ui/text/visibleText';
import { messageOf } from '../../ui/text/messages';

/** The part of a notebook's shared model that is used here. */
type SharedNotebook = Pick<INotebookModel['sharedModel'], 'insertCells'>;

/** The dependencies of the inserter. */
export interface ICodeInserterOptions {
  client: Pick<IAgentBoxClient, 'getThread' | 'getTurn'>;
  notebooks: Pick<INotebookTracker, 'find' | 'currentWidget'>;
  /** Ask the person a question; return true for yes. */
  confirm: (question: string) => Promise<boolean>;
  trans: TranslationBundle;
}

/** See `ICodeInserter`. */
export class CodeInserter implements ICodeInserter {
  constructor(private readonly _options: ICodeInserterOptions) {}

  get isEnabled(): boolean {
    return this._activeTurn() !== null;
  }

  async insertAt(node: HTMLElement, turnId: string): Promise<void> {
    const panel = this._options.notebooks.find(({ content }) =>
      content.node.contains(node)
    );
    const cell = panel?.content.widgets.find(one => one.node.contains(node));
    if (panel && cell) {
      await this._insert(panel, cell, turnId);
    }
  }

  async insertAtActiveCell(): Promise<void> {
    const active = this._activeTurn();
    if (!active) {
      throw new Error(
        this._options.trans.__('The active cell has no agent turn.')
      );
    }
    await this._insert(active.panel, active.cell, active.turnId);
  }

  private _activeTurn(): {
    panel: NotebookPanel;
    cell: Cell;
    turnId: string;
  } | null {
    const panel = this._options.notebooks.currentWidget;
    const cell = panel?.content.activeCell;
    const turnId = cell ? lastTurn(cell) : null;
    return panel && cell && turnId ? { panel, cell, turnId } : null;
  }

  private async _insert(
    panel: NotebookPanel,
    cell: Cell,
    turnId: string
  ): Promise<void> {
    const { client, trans } = this._options;
    const turn = await client.getTurn(turnId);
    const codes = codeThatRan(turn);
    if (codes.length > 0 && !(await this._isWanted(turn, panel))) {
      return;
    }
    const { content } = panel;
    // The notebook may have changed while the server was asked.
    const index = content.widgets.indexOf(cell);
    if (codes.length === 0) {
      throw new Error(trans.__('No code ran to completion in this turn.'));
    }
    if (!content.model || content.model.readOnly || index < 0) {
      throw new Error(trans.__('The notebook cannot be changed.'));
    }
    insertCode(content.model.sharedModel, index + 1, codes);
    content.deselectAll();
    content.activeCellIndex = index + 1;
    content.mode = 'command';
    await content.scrollToItem(index + 1, 'smart');
    content.activate();
  }

  /**
   * Whether the turn belongs to this notebook, or the person wants its code nevertheless: an output that was copied, or
   * forged, can name any turn.
   */
  private async _isWanted(turn: ITurn, panel: NotebookPanel): Promise<boolean> {
    const { client, confirm, trans } = this._options;
    const { notebook_path: path } = await client.getThread(turn.thread_id);
    if (path === panel.context.localPath) {
      return true;
    }
    return confirm(
      path
        ? trans.__('This code ran in another notebook: %1', label(path, 200))
        : trans.__('This code ran in no notebook.')
    );
  }
}

/** The code of a turn that ran to its end, in order. It comes from the server, because an output may show other code. */
export function codeThatRan(turn: ITurn): string[] {
  return turn.items.flatMap(item =>
    item.type === 'code_run' && item.status === 'completed' ? [item.code] : []
  );
}

/** Insert code cells in one step that can be undone. */
export function insertCode(
  notebook: SharedNotebook,
  index: number,
  codes: readonly string[]
): void {
  // What a person typed a moment before, or types next, is another step.
  const { undoManager } = notebook as SharedNotebook & {
    undoManager?: { stopCapturing(): void } | null;
  };
  undoManager?.stopCapturing();
  notebook.insertCells(
    index,
    codes.map(source => ({
      cell_type: 'code',
      source,
      // As every cell that a person inserts: it has no outputs that could run anything.
      metadata: { trusted: true }
    }))
  );
  undoManager?.stopCapturing();
}

/** Say why no cells were inserted. */
export function describeFailure(
  error: unknown,
  trans: TranslationBundle
): string {
  const why = messageOf(error, 300);
  return trans.__('No cells were inserted. %1', why);
}

/** The turn of the last item in a cell's outputs. */
export function lastTurn({ model }: Pick<Cell, 'model'>): string | null {
  const { outputs } = model as Partial<ICodeCellModel>;
  for (let index = (outputs?.length ?? 0) - 1; index >= 0; index--) {
    const data = outputs?.get(index).data[ITEM_MIME_TYPE];
    const turnId = readItem(data)?.turnId;
    if (turnId) {
      return turnId;
    }
  }
  return null;
}
