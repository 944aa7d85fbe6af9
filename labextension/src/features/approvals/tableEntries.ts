/**
 * The entries of a table of requests, from top to bottom, and which of them the keyboard reaches.
 */
import type { IApproval } from '../../api/protocol';
import { cellKey } from './batches';
import { grouped } from './grouped';

/** Rows by the cell from which they come. */
export function byCell(
  approvals: readonly IApproval[]
): [string, IApproval[]][] {
  return [...grouped(approvals, ({ call }) => cellKey(call))];
}

/** The entries below the table's header: rows, and headings of cells if the rows come from several. */
export interface ITableEntry {
  key: string;
  /** The request of a row. */
  approval: IApproval | null;
  /** All requests of the cell. */
  cell: readonly IApproval[];
}

export function entriesOf(
  cells: readonly (readonly [string, readonly IApproval[]])[]
): ITableEntry[] {
  return cells.flatMap(([key, cell]) => [
    ...(cells.length > 1 ? [{ key, approval: null, cell }] : []),
    ...cell.map(approval => ({ key: approval.id, approval, cell }))
  ]);
}

/** The rows that Tab, the arrows, Home and End reach. */
export function reachable(
  pending: readonly IApproval[],
  current: string | null
): string[] {
  const at = pending.findIndex(({ id }) => id === current);
  return [0, at - 1, at, at + 1, pending.length - 1]
    .map(index => pending[index] as IApproval | undefined)
    .flatMap(approval => (approval ? [approval.id] : []));
}
