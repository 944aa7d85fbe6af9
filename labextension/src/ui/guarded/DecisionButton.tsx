/**
 * A button that decides, or leads to a decision. Only a person's own intentional gesture activates it.
 */
import React from 'react';

import { useFirstFocus } from '../hooks/useFirstFocus';
import { Lettered, useLetter } from './cardKeys';
import { CardGuard } from './GuardedCard';
import { GUARD_TIME } from './guardTime';
import { PointerWatch } from './pointerWatch';

export { GUARD_TIME } from './guardTime';

export interface IDecisionButtonProps {
  label: string;
  /** The label for screen readers, if it says more. */
  name?: string;
  /** `caution`: allows, and must not look like the obvious choice. */
  kind: 'allow' | 'caution' | 'neutral' | 'reject' | 'link';
  describedBy?: string;
  /** The letter that presses the button while its card has the focus. */
  letter?: 'A' | 'E' | 'R';
  isBusy?: boolean;
  /** Goes to what must be corrected first: with it, the button is off, and a press leads there. */
  correct?: () => void;
  /** Whether the button takes the focus when it appears, because it replaces the one that was pressed. */
  isFocused?: boolean;
  onActivate: () => void;
}

/** What a list of cards shows; when that changes, the time of every button in it starts again. */
export const ShownContent = React.createContext('');

const watch = new PointerWatch();

/** Ignores scripts, held keys, clicks before a person could have seen the button, and covered cards. */
export function DecisionButton(props: IDecisionButtonProps): JSX.Element {
  const ref = React.useRef<HTMLButtonElement>(null);
  const { exposure, confirm, refuse } = React.useContext(CardGuard);
  const isExposed = exposure === 'exposed';
  const { isArmed, round, arm } = useArming(ref, isExposed);
  const isReady = isArmed && isExposed && !props.isBusy && !props.correct;
  useFirstFocus(ref, props.isFocused ?? false);

  const press = (): void => {
    if (!isReady) {
      if (!props.isBusy) {
        refuse('moved');
      }
    } else if (confirm()) {
      props.onActivate();
    }
  };
  const onClick = (event: React.MouseEvent<HTMLButtonElement>): void => {
    const isByKey = event.detail === 0;
    if (!event.nativeEvent.isTrusted) {
      return;
    }
    if (props.correct) {
      props.correct();
      return;
    }
    if (isReady && !isByKey && watch.isNew(event.currentTarget)) {
      arm();
      refuse('moved');
      return;
    }
    press();
  };
  useLetter(props.letter, () => {
    const node = ref.current;
    if (node && !isInSight(node)) {
      node.scrollIntoView({ block: 'nearest' });
      refuse('unseen');
    } else {
      press();
    }
  });
  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.repeat) {
      event.preventDefault();
    }
  };

  return (
    <button
      type="button"
      ref={ref}
      className={
        props.kind === 'link'
          ? 'jp-AgentBox-link'
          : `jp-AgentBox-button jp-mod-${props.kind}`
      }
      aria-describedby={props.describedBy}
      aria-disabled={!isReady}
      aria-busy={props.isBusy}
      aria-keyshortcuts={props.letter}
      aria-label={props.name ?? (props.letter && props.label)}
      data-arming={isArmed || !isExposed ? undefined : round % 2}
      onClick={onClick}
      onKeyDown={onKeyDown}
    >
      <Lettered label={props.label} letter={props.letter} />
    </button>
  );
}

/** Whether a button has been in its place, exposed and in the same list for `GUARD_TIME`, and a function that starts the time again. */
function useArming(
  ref: React.RefObject<HTMLElement>,
  isExposed: boolean
): { isArmed: boolean; round: number; arm: () => void } {
  const [isArmed, setArmed] = React.useState(false);
  /** How often the time started again; what displays the time restarts with it. */
  const [round, setRound] = React.useState(0);
  const timer = React.useRef(0);
  const content = React.useContext(ShownContent);
  const arm = React.useCallback(() => {
    window.clearTimeout(timer.current);
    setArmed(false);
    setRound(before => before + 1);
    timer.current = window.setTimeout(() => {
      setArmed(true);
    }, GUARD_TIME);
  }, []);

  React.useEffect(arm, [arm, isExposed, content]);
  React.useEffect(() => {
    document.addEventListener('visibilitychange', arm);
    return () => {
      window.clearTimeout(timer.current);
      document.removeEventListener('visibilitychange', arm);
    };
  }, [arm]);
  // A button that nobody sees is not ready: with a thousand requests, most are out of view.
  React.useEffect(() => {
    const watching =
      isExposed && ref.current ? watch.add(ref.current, arm) : null;
    return () => {
      watching?.dispose();
    };
  }, [arm, ref, isExposed]);

  return { isArmed, round, arm };
}

/** Whether the center of a node is visible where it is. */
function isInSight(node: HTMLElement): boolean {
  const { left, top, width, height } = node.getBoundingClientRect();
  const found = document.elementFromPoint(left + width / 2, top + height / 2);
  return found !== null && node.contains(found);
}
