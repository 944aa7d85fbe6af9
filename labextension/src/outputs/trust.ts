/**
 * Keeps code cells from being trusted while a gate is closed.
 *
 * JupyterLab trusts each cell that it runs, and saves that with the notebook: opened again, with any kernel and on any
 * page, the output would run.
 */
import type { ICellModel } from '@jupyterlab/cells';
import type { ISignal } from '@lumino/signaling';

import type { IGate } from './gate';

/** The cells of a notebook's model. */
export interface ITrustedCells {
  readonly cells: Iterable<ICellModel> & {
    readonly changed: ISignal<unknown, unknown>;
  };
  dirty: boolean;
}

/** Follow the cells of a model for as long as it lives. */
export function keepUntrusted(model: ITrustedCells, gate: IGate): void {
  const followed = new WeakSet<ICellModel>();

  const distrust = (cell: ICellModel): void => {
    const isTrusted = cell.trusted || Boolean(cell.getMetadata('trusted'));
    if (gate.verdict !== 'closed' || cell.type !== 'code' || !isTrusted) {
      return;
    }
    cell.trusted = false;
    // Nothing that a person would undo.
    cell.sharedModel.transact(() => {
      cell.deleteMetadata('trusted');
    }, false);
  };
  const look = (): void => {
    for (const cell of model.cells) {
      if (!followed.has(cell)) {
        followed.add(cell);
        cell.stateChanged.connect((_, { name }) => {
          if (name === 'trusted') {
            distrust(cell);
          }
        });
      }
      distrust(cell);
    }
  };

  model.cells.changed.connect(look);
  gate.changed.connect(() => {
    const { dirty } = model;
    look();
    model.dirty = dirty;
  });
  look();
}
