/**
 * A button that only a person's own gesture presses.
 */
import React from 'react';

import { useFirstFocus } from '../hooks/useFirstFocus';

export interface IPersonButtonProps {
  label: string;
  /** What a screen reader says, where that is more. */
  name?: string;
  isLink?: boolean;
  /** Whether a press does nothing. The button keeps the focus all the same, which is otherwise lost while it waits. */
  isDisabled?: boolean;
  /** Whether the button takes the focus when it appears, because it takes the place of what had it. */
  isFocused?: boolean;
  onActivate: () => void;
}

/** Ignores clicks that a script makes. What takes effect at once is a `DecisionButton` on a `GuardedCard` instead. */
export function PersonButton(props: IPersonButtonProps): JSX.Element {
  const ref = React.useRef<HTMLButtonElement>(null);
  useFirstFocus(ref, props.isFocused ?? false);
  return (
    <button
      type="button"
      ref={ref}
      className={
        props.isLink ? 'jp-AgentBox-link' : 'jp-AgentBox-button jp-mod-neutral'
      }
      aria-label={props.name}
      aria-disabled={props.isDisabled}
      onClick={event => {
        if (event.nativeEvent.isTrusted && !props.isDisabled) {
          props.onActivate();
        }
      }}
    >
      {props.label}
    </button>
  );
}
