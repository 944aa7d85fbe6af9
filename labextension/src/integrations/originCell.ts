/**
 * The code of the cell that a request came from.
 */
import type { ICellModel } from '@jupyterlab/cells';

import type { IOriginCell } from '../internalTokens';

/** See `IOriginCell`. */
export class OriginCell implements IOriginCell {
  constructor(
    private readonly _cell: ICellModel,
    private readonly _isReadOnly: boolean
  ) {}

  get source(): string {
    return this._cell.sharedModel.getSource();
  }

  get isEditable(): boolean {
    return !this._isReadOnly && this._cell.getMetadata('editable') !== false;
  }

  replace(before: string, after: string): boolean {
    if (!this.isEditable || this.source !== before) {
      return false;
    }
    const { start, end, text } = changeOf(before, after);
    this._cell.sharedModel.updateSource(start, end, text);
    return true;
  }
}

/** The only part that differs, so that cursors in other places, including those of collaborators, do not move. */
export function changeOf(
  before: string,
  after: string
): { start: number; end: number; text: string } {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) {
    start += 1;
  }
  start -= isHalf(before, start) || isHalf(after, start) ? 1 : 0;
  let tail = 0;
  while (
    tail < most - start &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  ) {
    tail += 1;
  }
  const isSplit =
    isHalf(before, before.length - tail) || isHalf(after, after.length - tail);
  tail -= isSplit ? 1 : 0;
  return {
    start,
    end: before.length - tail,
    text: after.slice(start, after.length - tail)
  };
}

/** Whether a position is between the two halves of a surrogate pair: a shared text would lose both. */
function isHalf(text: string, at: number): boolean {
  return (text.codePointAt(at - 1) ?? 0) > 0xffff;
}
