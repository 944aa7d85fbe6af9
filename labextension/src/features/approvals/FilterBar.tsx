/**
 * The filter above the pending requests.
 */
import React from 'react';

import { LinkButton } from '../../ui/components/VisibleText';
import { SearchField } from '../../ui/components/SearchField';
import { useTrans } from '../../ui/context';
import { FEW } from './pendingFilter';
import type { PendingFilter } from './pendingFilter';

export interface IFilterBarProps {
  filter: PendingFilter;
  /** The number of pending requests that are shown. */
  shown: number;
  /** The number of all pending requests. */
  total: number;
  /** Moves the focus to the first request that is shown. */
  onLeave: () => void;
}

/** Is there while many requests wait, and as long as it is used. */
export function FilterBar(props: IFilterBarProps): JSX.Element | null {
  const trans = useTrans();
  const { filter, shown, total } = props;
  const [hasFocus, setFocus] = React.useState(false);
  const field = React.useRef<HTMLInputElement>(null);
  const isIdle = total === 0 && !hasFocus;
  React.useEffect(() => {
    if (isIdle) {
      filter.text = ''; // it would hide what comes later, when nobody thinks of it
    }
  }, [filter, isIdle]);
  const clear = (): void => {
    filter.text = '';
    field.current?.focus();
  };
  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.key === 'Escape' && filter.text !== '') {
      clear();
    } else if (event.key === 'ArrowDown') {
      props.onLeave();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  if (total <= FEW && filter.text === '' && !hasFocus) {
    return null;
  }
  const isNarrowed = filter.isActive && total > 0;
  return (
    <div
      role="search"
      className="jp-AgentBox-filterBar"
      onFocus={() => {
        setFocus(true);
      }}
      onBlur={() => {
        setFocus(false);
      }}
    >
      <SearchField
        ref={field}
        name={trans.__('Filter')}
        value={filter.text}
        placeholder={trans.__('Tool, notebook or argument')}
        onChange={text => {
          filter.text = text;
        }}
        onKeyDown={onKeyDown}
      />
      <div className="jp-AgentBox-filterState">
        <span role="status">
          {isNarrowed && shown === 0 ? trans.__('No request matches.') : null}{' '}
          {isNarrowed
            ? trans._n('%1 of %2 shown', '%1 of %2 shown', shown, total)
            : null}
        </span>
        {filter.isActive ? (
          <LinkButton label={trans.__('Clear the filter')} onClick={clear} />
        ) : null}
      </div>
    </div>
  );
}
