/**
 * Has the editors of cells that ask an agent show prose: in Python's colors, words would be keywords, and apostrophes strings.
 */
import type { ICellModel } from '@jupyterlab/cells';
import type { CellList, Notebook } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import { isAgentCell } from './agentCells';

/** The MIME type of the editors of Markdown cells. */
const PROSE = 'text/x-ipythongfm';

/** The part of a notebook that is used here. */
export type PromptNotebook = Pick<
  Notebook,
  'codeMimetype' | 'disposed' | 'model' | 'modelChanged'
>;

/** Watches the cells of a notebook while it is open. Only the editor changes: for the file and the kernel, it stays code. */
export class PromptLanguage implements IDisposable {
  constructor(private readonly _notebook: PromptNotebook) {
    _notebook.modelChanged.connect(this._onModelChanged, this);
    _notebook.disposed.connect(this.dispose, this);
    this._onModelChanged();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  private _onModelChanged(): void {
    const cells = this._notebook.model?.cells;
    cells?.changed.connect(this._onCellsChanged, this);
    this._watch(cells ?? []);
  }

  private _onCellsChanged(
    _: CellList,
    { newValues }: { newValues: readonly (ICellModel | undefined)[] }
  ): void {
    this._watch(newValues);
  }

  private _watch(cells: Iterable<ICellModel | undefined>): void {
    for (const cell of cells) {
      if (cell?.type === 'code') {
        cell.contentChanged.connect(this._update, this);
        // The notebook gives all its cells the language of its kernel, when it hears of it.
        cell.mimeTypeChanged.connect(this._onMimeTypeChanged, this);
        this._update(cell);
      }
    }
  }

  private _onMimeTypeChanged(cell: object): void {
    this._update(cell as ICellModel);
  }

  private _update(cell: ICellModel): void {
    const { codeMimetype } = this._notebook;
    // No other language has this magic.
    const isPrompt =
      codeMimetype.includes('python') &&
      isAgentCell(cell.sharedModel.getSource());
    if (isPrompt) {
      cell.mimeType = PROSE;
    } else if (cell.mimeType === PROSE) {
      cell.mimeType = codeMimetype;
    }
  }

  private _isDisposed = false;
}
