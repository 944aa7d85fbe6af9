/**
 * A long list, of which only the items near the view are rendered.
 */
import React from 'react';

import { ITEM_KEY, useWindow } from '../hooks/useWindow';

export interface IWindowedListProps {
  listRef: React.RefObject<HTMLUListElement>;
  /** The key of each item. */
  keys: readonly string[];
  /** The keys of items that are rendered wherever they are. */
  pinned: ReadonlySet<string>;
  /** The id of the element with the list's name. */
  labelledBy?: string;
  /** The name of an item. */
  labelOf: (index: number) => string;
  /** The content of an item. */
  children: (index: number) => JSX.Element;
}

export function WindowedList(props: IWindowedListProps): JSX.Element {
  const { listRef, keys, pinned, labelledBy, labelOf, children } = props;
  return (
    <ul ref={listRef} role="list" aria-labelledby={labelledBy}>
      {useWindow(listRef, keys, pinned).map(part => {
        if ('height' in part) {
          return (
            <li
              key={`gap ${part.gapBefore}`}
              role="presentation"
              style={{ height: part.height }}
            />
          );
        }
        const { index } = part;
        const key = keys[index];
        return (
          <li
            key={key}
            className="jp-AgentBox-item"
            aria-label={labelOf(index)}
            aria-setsize={keys.length}
            aria-posinset={index + 1}
            {...{ [ITEM_KEY]: key }}
          >
            {children(index)}
          </li>
        );
      })}
    </ul>
  );
}
