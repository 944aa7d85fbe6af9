/**
 * Requests of one tool as a table: which of them belong together, and how they differ.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import { namesOf, stringify } from '../../api/json';
import type { IApproval, IToolCall } from '../../api/protocol';
import { codeOf } from '../../ui/code/findings';
import { isShort, shortValue } from '../../ui/text/signature';
import type { ISignature } from '../../ui/text/signature';
import { label } from '../../ui/text/visibleText';
import { grouped } from './grouped';

/** The maximum number of arguments in columns; if there are more, each row is one line. */
const MAX_COLUMNS = 4;

/** The number of characters of a value that a table shows. */
const MAX_CELL = 200;

/** The fraction of rows that must share a value so that other values are marked. */
const USUAL_PART = 2 / 3;

/** An entry of the list: one request, or all requests of one tool. */
export interface IPendingItem {
  /** The request's id, or the tool's key. */
  key: string;
  approvals: readonly IApproval[];
  isBatch: boolean;
}

/** An argument in which rows differ. */
export interface IColumn {
  name: string;
  /** The value of almost all rows, as JSON; `null` if there is none. */
  usual: string | null;
}

/** How a table shows the arguments of its rows. */
export interface ITableLayout {
  /** Arguments that are the same in all rows. */
  same: readonly { name: string; value: ISignature }[];
  columns: readonly IColumn[];
}

/** What the requests in a table have in common: everything that its header says about them. */
const toolKey = once(({ call, tool }) =>
  JSON.stringify([
    call.server,
    call.tool,
    call.isolation ?? null,
    call.has_own_settings ?? false,
    tool.description,
    stringify(tool.annotations)
  ])
);

/** Identifies the table of a request, among those of all notebooks. */
export function tableKey(approval: IApproval): string {
  return (approval.call.notebook_path ?? '') + toolKey(approval);
}

/** Identifies the cell from which a request came. */
export function cellKey({ kernel_id, cell_id }: IToolCall): string {
  return JSON.stringify([kernel_id, cell_id]);
}

/**
 * Group requests of one tool, at the position of the oldest of them.
 *
 * What was a table stays one while something is in it, so that nothing changes its form under a pointer; `isAlone` says
 * of a request that it stays a card, because a form is open on it.
 */
export function itemsOf(
  approvals: readonly IApproval[],
  wasBatch: (key: string) => boolean,
  isAlone: (id: string) => boolean
): IPendingItem[] {
  const tools = grouped(
    approvals.filter(({ id }) => !isAlone(id)),
    toolKey
  );
  const items: IPendingItem[] = [];
  const done = new Set<string>();
  for (const approval of approvals) {
    const key = toolKey(approval);
    const together = tools.get(key) ?? [];
    if (isAlone(approval.id) || (together.length < 2 && !wasBatch(key))) {
      items.push({ key: approval.id, approvals: [approval], isBatch: false });
    } else if (!done.has(key)) {
      done.add(key);
      items.push({ key, approvals: together, isBatch: true });
    }
  }
  return items;
}

/** Divide the arguments of rows into equal and different ones. */
export function layoutOf(
  approvals: readonly IApproval[],
  trans: TranslationBundle
): ITableLayout {
  const values = new Map<string, Map<string, number>>();
  for (const { call } of approvals) {
    for (const name of namesOf(call.arguments)) {
      const counts = values.get(name) ?? new Map<string, number>();
      values.set(name, counts);
      const text = stringify(call.arguments[name]);
      counts.set(text, (counts.get(text) ?? 0) + 1);
    }
  }
  const same: ITableLayout['same'][number][] = [];
  const columns: IColumn[] = [];
  for (const [name, counts] of values) {
    const [usual, most] = commonest(counts);
    if (most === approvals.length && approvals.length > 1) {
      const value = approvals[0].call.arguments[name];
      same.push({ name, value: shortValue(name, value, trans, MAX_CELL) });
    } else {
      const isUsual = most > 2 && most >= USUAL_PART * approvals.length;
      columns.push({ name, usual: isUsual ? usual : null });
    }
  }
  return { same, columns };
}

/** Whether the rows have few enough arguments for columns. */
export function hasColumns({ columns }: ITableLayout): boolean {
  return columns.length <= MAX_COLUMNS;
}

/** The arguments of a row in one line, if there are too many for columns. */
export function lineOf(
  approval: IApproval,
  columns: readonly IColumn[],
  trans: TranslationBundle
): string {
  return columns
    .map(
      ({ name }) => [label(name, 60), cellOf(approval, name, trans)] as const
    )
    .map(([name, cell]) => (cell ? `${name}=${cell.text}` : null))
    .filter(part => part !== null)
    .join(', ');
}

/** The value in a cell of the table; `null` if the call does not have the argument. */
export function cellOf(
  { call }: IApproval,
  name: string,
  trans: TranslationBundle
): ISignature | null {
  return Object.hasOwn(call.arguments, name)
    ? shortValue(name, call.arguments[name], trans, MAX_CELL)
    : null;
}

/** Whether a cell of the table differs from the value of almost all rows. */
export function isUnusual({ call }: IApproval, column: IColumn): boolean {
  const text = Object.hasOwn(call.arguments, column.name)
    ? stringify(call.arguments[column.name])
    : '';
  return column.usual !== null && text !== column.usual;
}

/** Whether a table shows everything that a person must see of a request. */
export const isWhollyShown = once(
  ({ call }) =>
    !call.omitted &&
    (call.look_alikes ?? []).length === 0 &&
    codeOf(call) === null &&
    namesOf(call.arguments).every(name =>
      isShort(name, call.arguments[name], MAX_CELL)
    )
);

/** Compute something about a request once: a table of a thousand rows needs it at each change. */
function once<T>(find: (approval: IApproval) => T): (approval: IApproval) => T {
  const found = new WeakMap<IApproval, { value: T }>();
  return approval => {
    const known = found.get(approval) ?? { value: find(approval) };
    found.set(approval, known);
    return known.value;
  };
}

function commonest(counts: ReadonlyMap<string, number>): [string, number] {
  let found: [string, number] = ['', 0];
  for (const entry of counts) {
    if (entry[1] > found[1]) {
      found = entry;
    }
  }
  return found;
}
