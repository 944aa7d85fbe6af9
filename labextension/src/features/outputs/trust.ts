/**
 * Prevents code cells from becoming trusted while a gate is closed.
 *
 * JupyterLab trusts each cell that it runs, and saves that with the notebook: opened again, with any kernel and on any
 * page, the output would run.
 */
import type { ICellModel } from '@jupyterlab/cells';
import type { Notebook } from '@jupyterlab/notebook';
import type { ISignal } from '@lumino/signaling';

import type { SessionGate } from './gate';

/** The cells of a notebook's model. */
export interface ITrustedCells {
  readonly cells: Iterable<ICellModel> & {
    readonly changed: ISignal<unknown, unknown>;
  };
  dirty: boolean;
}

/** What decides about the cells of a notebook. */
export type TrustGate = Pick<SessionGate, 'verdict' | 'wasSandboxed'> & {
  readonly changed: ISignal<unknown, void>;
};

/** Observe the cells of a notebook, whatever model it gets. */
export function keepNotebookUntrusted(
  notebook: Pick<Notebook, 'model' | 'modelChanged'>,
  gate: TrustGate
): void {
  const follow = (): void => {
    if (notebook.model) {
      keepUntrusted(notebook.model, gate);
    }
  };
  notebook.modelChanged.connect(follow);
  follow();
}

/**
 * Observe the cells of a model for as long as it lives.
 *
 * Where a sandboxed kernel was, no code cell is trusted. While that is not known, none becomes trusted; one that would
 * have become so does when the kernel turns out to be a plain one, so that a slow server takes nothing away.
 */
export function keepUntrusted(model: ITrustedCells, gate: TrustGate): void {
  const followed = new WeakSet<ICellModel>();
  const waiting = new Set<ICellModel>();

  const distrust = (cell: ICellModel): void => {
    cell.trusted = false;
    // Nothing that a person would undo.
    cell.sharedModel.transact(() => {
      cell.deleteMetadata('trusted');
    }, false);
  };
  const look = (cell: ICellModel): void => {
    const isTrusted = cell.trusted || Boolean(cell.getMetadata('trusted'));
    if (gate.wasSandboxed && cell.type === 'code' && isTrusted) {
      distrust(cell);
    }
  };
  const follow = (cell: ICellModel): void => {
    if (followed.has(cell)) {
      return;
    }
    followed.add(cell);
    cell.stateChanged.connect((_, { name }) => {
      if (name !== 'trusted') {
        return;
      }
      if (cell.trusted && gate.verdict !== 'open' && cell.type === 'code') {
        waiting.add(cell);
        distrust(cell);
      }
      look(cell);
    });
  };
  const lookAtAll = (): void => {
    for (const cell of model.cells) {
      follow(cell);
      look(cell);
    }
  };
  const release = (): void => {
    if (gate.wasSandboxed) {
      waiting.clear();
    } else if (gate.verdict === 'open') {
      for (const cell of model.cells) {
        if (waiting.delete(cell)) {
          cell.trusted = true;
        }
      }
    }
  };

  model.cells.changed.connect(lookAtAll);
  gate.changed.connect(() => {
    const { dirty } = model;
    lookAtAll();
    release();
    model.dirty = dirty;
  });
  lookAtAll();
}
