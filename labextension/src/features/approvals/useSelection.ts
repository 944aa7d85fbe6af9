/**
 * The selected rows of a table, and the row with the keyboard's focus.
 */
import React from 'react';

/** The selection of a table, and functions that change it. */
export interface ISelection {
  readonly selected: ReadonlySet<string>;
  /** The row that Tab reaches. */
  readonly current: string | null;
  /** Select or deselect a row. */
  toggle: (id: string) => void;
  /** Select the rows from the last one that was toggled, or else from the current one. */
  extendTo: (id: string) => void;
  /** Make a row the current one. */
  moveTo: (id: string) => void;
  /** Select rows as far as possible, or deselect them. */
  setAll: (ids: readonly string[], isSelected: boolean) => void;
}

/**
 * Keep a selection of rows; `order` contains the selectable ones, from top to bottom.
 *
 * The functions stay the same, so that a row that did not change is not rendered again.
 */
export function useSelection(order: readonly string[]): ISelection {
  const [selected, setSelected] = React.useState<ReadonlySet<string>>(
    new Set<string>()
  );
  const [current, setCurrent] = React.useState<string | null>(null);
  const rows = React.useRef(order);
  rows.current = order;
  /** Where an extension of the selection began, and what was selected then. */
  const anchor = React.useRef<{ id: string; base: ReadonlySet<string> } | null>(
    null
  );
  const at = React.useRef<string | null>(null);
  const latest = React.useRef(selected);
  latest.current = selected;
  // What leaves the table, by a decision or a filter, is not selected if it comes back.
  React.useLayoutEffect(() => {
    const present = new Set(order);
    const kept = [...selected].filter(id => present.has(id));
    if (anchor.current) {
      const base = [...anchor.current.base].filter(id => present.has(id));
      anchor.current = { id: anchor.current.id, base: new Set(base) };
    }
    if (kept.length < selected.size) {
      latest.current = new Set(kept);
      setSelected(latest.current);
    }
  }, [order, selected]);

  const ways = React.useMemo(() => {
    const select = (next: ReadonlySet<string>): void => {
      latest.current = next;
      setSelected(next);
    };
    const setAll = (ids: readonly string[], isSelected: boolean): void => {
      const next = new Set(latest.current);
      const allowed = new Set(rows.current);
      for (const id of ids) {
        if (isSelected && allowed.has(id)) {
          next.add(id);
        } else {
          next.delete(id);
        }
      }
      select(next);
    };
    const moveTo = (id: string): void => {
      anchor.current = null;
      at.current = id;
      setCurrent(id);
    };
    return {
      setAll,
      moveTo,
      toggle: (id: string) => {
        if (rows.current.includes(id)) {
          setAll([id], !latest.current.has(id));
        }
        moveTo(id);
        anchor.current = { id, base: latest.current };
      },
      extendTo: (id: string) => {
        const start = anchor.current ?? {
          id: at.current ?? id,
          base: latest.current
        };
        const [from, to] = [start.id, id].map(each =>
          rows.current.indexOf(each)
        );
        const between =
          from < 0 || to < 0
            ? [id].filter(each => rows.current.includes(each))
            : rows.current.slice(Math.min(from, to), Math.max(from, to) + 1);
        select(new Set([...start.base, ...between]));
        moveTo(id);
        anchor.current = start;
      }
    };
  }, []);
  return React.useMemo(
    () => ({ selected, current, ...ways }),
    [selected, current, ways]
  );
}
