/**
 * A button that only a person's own gesture presses.
 */
import React from 'react';

import { GUARD_TIME } from './guardTime';

export interface IPersonButtonProps {
  label: string;
  /** What a screen reader says, where that is more. */
  name?: string;
  isLink?: boolean;
  isDisabled?: boolean;
  /**
   * Whether it decides what was shown just now: it takes no gesture in its first half second, so that the second click of
   * a double click, or a key that is held, on what stood in its place before, is none on it. Give it a `key` of its own.
   */
  isDecisive?: boolean;
  onActivate: () => void;
}

/** Ignores clicks that a script makes: a rule decides, and a server runs, so whoever adds one decides. */
export function PersonButton(props: IPersonButtonProps): JSX.Element {
  const { isDecisive = false } = props;
  const isReady = useReadiness(isDecisive);
  return (
    <button
      type="button"
      className={
        props.isLink ? 'jp-AgentBox-link' : 'jp-AgentBox-button jp-mod-neutral'
      }
      aria-label={props.name}
      aria-disabled={isReady ? undefined : true}
      disabled={props.isDisabled}
      onKeyDown={event => {
        if (isDecisive && event.repeat) {
          event.preventDefault();
        }
      }}
      onClick={event => {
        if (event.nativeEvent.isTrusted && isReady) {
          props.onActivate();
        }
      }}
    >
      {props.label}
    </button>
  );
}

/** Whether a button has been there for `GUARD_TIME`, if it has to be. */
function useReadiness(isDecisive: boolean): boolean {
  const [isReady, setReady] = React.useState(!isDecisive);
  React.useEffect(() => {
    if (!isDecisive) {
      return;
    }
    const timer = window.setTimeout(() => {
      setReady(true);
    }, GUARD_TIME);
    return () => {
      window.clearTimeout(timer);
    };
  }, [isDecisive]);
  return isReady;
}
