/**
 * A button that decides, or leads to a decision. Only a person's own, meant gesture activates it.
 */
import React from 'react';

import { PointerWatch } from './pointerWatch';
import { CardGuard } from './GuardedCard';

/** Milliseconds that a button must have been in its place, on a card that is not covered, before it takes a gesture. */
export const GUARD_TIME = 500;

export interface IDecisionButtonProps {
  label: string;
  /** `caution`: allows, and does not look like the obvious thing to do. */
  kind: 'allow' | 'caution' | 'neutral' | 'reject';
  describedBy?: string;
  isBusy?: boolean;
  /** Whether the button takes the focus when it appears, because it replaces the one that was pressed. */
  isFocused?: boolean;
  onActivate: () => void;
}

const watch = new PointerWatch();

/** Ignores scripts, held keys, clicks that come before a person could have seen the button, and covered cards. */
export function DecisionButton(props: IDecisionButtonProps): JSX.Element {
  const ref = React.useRef<HTMLButtonElement>(null);
  const { exposure, confirm, refuse } = React.useContext(CardGuard);
  const isExposed = exposure === 'exposed';
  const { isArmed, arm } = useArming(ref, isExposed);
  const isReady = isArmed && isExposed && !props.isBusy;
  useInitialFocus(ref, props.isFocused ?? false);

  const onClick = (event: React.MouseEvent<HTMLButtonElement>): void => {
    const isByKey = event.detail === 0;
    if (!event.nativeEvent.isTrusted || !isReady) {
      return;
    }
    if (!isByKey && watch.isNew(event.currentTarget)) {
      arm();
      refuse();
      return;
    }
    if (confirm()) {
      props.onActivate();
    }
  };
  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.repeat) {
      event.preventDefault();
    }
  };

  return (
    <button
      type="button"
      ref={ref}
      className={`jp-AgentBox-button jp-mod-${props.kind}`}
      aria-describedby={props.describedBy}
      aria-disabled={!isReady}
      aria-busy={props.isBusy}
      onClick={onClick}
      onKeyDown={onKeyDown}
    >
      {props.label}
    </button>
  );
}

/** Whether a button has been in its place, and exposed, for `GUARD_TIME`, and a way to begin anew. */
function useArming(
  ref: React.RefObject<HTMLElement>,
  isExposed: boolean
): { isArmed: boolean; arm: () => void } {
  const [isArmed, setArmed] = React.useState(false);
  const timer = React.useRef(0);
  const arm = React.useCallback(() => {
    window.clearTimeout(timer.current);
    setArmed(false);
    timer.current = window.setTimeout(() => {
      setArmed(true);
    }, GUARD_TIME);
  }, []);

  React.useEffect(arm, [arm, isExposed]);
  React.useEffect(() => {
    document.addEventListener('visibilitychange', arm);
    const watching = ref.current && watch.add(ref.current, arm);
    return () => {
      window.clearTimeout(timer.current);
      document.removeEventListener('visibilitychange', arm);
      watching?.dispose();
    };
  }, [arm, ref]);

  return { isArmed, arm };
}

function useInitialFocus(
  ref: React.RefObject<HTMLElement>,
  isFocused: boolean
): void {
  const isWanted = React.useRef(isFocused);
  React.useEffect(() => {
    if (isWanted.current) {
      ref.current?.focus();
    }
  }, [ref]);
}
