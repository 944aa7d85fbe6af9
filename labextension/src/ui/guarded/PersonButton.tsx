/**
 * A button that only a person's own gesture activates.
 */
import React from 'react';

import { useFirstFocus } from '../hooks/useFirstFocus';

export interface IPersonButtonProps {
  label: string;
  /** The label for screen readers, if it says more. */
  name?: string;
  isLink?: boolean;
  /** Whether a press does nothing. The button keeps the focus nevertheless, which would otherwise be lost while it waits. */
  isDisabled?: boolean;
  /** Whether the button takes the focus when it appears, because it replaces what had it. */
  isFocused?: boolean;
  onActivate: () => void;
}

/** Ignores clicks by scripts. For what takes effect at once, use a `DecisionButton` on a `GuardedCard` instead. */
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
