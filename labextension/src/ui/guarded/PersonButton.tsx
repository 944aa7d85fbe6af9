/**
 * A button that only a person's own gesture presses.
 */
import React from 'react';

export interface IPersonButtonProps {
  label: string;
  /** What a screen reader says, where that is more. */
  name?: string;
  isLink?: boolean;
  isDisabled?: boolean;
  onActivate: () => void;
}

/** Ignores clicks that a script makes. What takes effect at once is a `DecisionButton` on a `GuardedCard` instead. */
export function PersonButton(props: IPersonButtonProps): JSX.Element {
  return (
    <button
      type="button"
      className={
        props.isLink ? 'jp-AgentBox-link' : 'jp-AgentBox-button jp-mod-neutral'
      }
      aria-label={props.name}
      disabled={props.isDisabled}
      onClick={event => {
        if (event.nativeEvent.isTrusted) {
          props.onActivate();
        }
      }}
    >
      {props.label}
    </button>
  );
}
