/**
 * A card whose buttons count only while a person can see all of it, and that says how to go on otherwise.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { useTrans } from '../context';
import { CardKeys, KeyHelp, useCardKeys } from './cardKeys';
import type { IKeyHelpProps, Refusal } from './cardKeys';
import { OcclusionWatch } from './occlusion';
import type { Exposure } from './occlusion';
import { noteCard } from './renderedCards';

/** Milliseconds for which a card must be covered before it says so: menus and notifications come and go. */
const NOTE_DELAY = 1000;

/** What a button on a card checks before it acts. */
export interface ICardGuard {
  /** The card's visibility at the last check. */
  exposure: Exposure;
  /** Why the last press did not count; `null` if it did. */
  refusal: Refusal | null;
  /** Check now, and return whether the card is exposed; if not, the card says that the press did not count. */
  confirm: () => boolean;
  /** Make the card say that a press did not count. */
  refuse: (why: Refusal) => void;
}

/** A button outside a card does nothing. */
export const CardGuard = React.createContext<ICardGuard>({
  exposure: 'hidden',
  refusal: null,
  confirm: () => false,
  refuse: () => undefined
});

export interface IGuardedCardProps extends React.HTMLAttributes<HTMLDivElement> {
  /** Whether the card has buttons to guard. */
  isGuarded: boolean;
  /** Whether the card is in a widget, whose layout its kernel controls. */
  isInWidget?: boolean;
  'data-question-id'?: string;
  'data-request-id'?: string;
  'data-risk'?: string;
  'data-status'?: string;
  'data-lm-suppress-shortcuts'?: 'true';
}

/** The box of a card. It watches its own visibility for the buttons on it. */
export const GuardedCard = React.forwardRef<HTMLDivElement, IGuardedCardProps>(
  (props, forwarded) => {
    const { isGuarded, isInWidget = false, className, ...attributes } = props;
    const { tabIndex = -1 } = attributes;
    const root = React.useRef<HTMLDivElement>(null);
    const guard = useCardGuard(root, isGuarded, isInWidget);
    const { keys, isReady, onKeyDown } = useCardKeys(
      root,
      isGuarded && !isInWidget,
      guard.refuse
    );
    React.useImperativeHandle(forwarded, () => root.current as HTMLDivElement);
    React.useLayoutEffect(() => {
      if (root.current) {
        noteCard(root.current);
      }
    }, []);
    return (
      <CardGuard.Provider value={guard}>
        <CardKeys.Provider value={keys}>
          <div
            {...attributes}
            ref={root}
            className={`jp-AgentBox-card ${className ?? ''}`}
            data-keys={isReady ? 'ready' : undefined}
            tabIndex={tabIndex}
            role="group"
            onKeyDown={onKeyDown}
          />
        </CardKeys.Provider>
      </CardGuard.Provider>
    );
  }
);
GuardedCard.displayName = 'GuardedCard';

export interface IGuardedProps {
  /** What the help about the keys says. */
  keys?: IKeyHelpProps;
  /** Leads to a place where the buttons work; without it, there is no other. */
  elsewhere?: { label: string; open: () => void };
  children: React.ReactNode;
}

/** The buttons of a card or, if they could not be trusted, the reason and how to go on. */
export function Guarded(props: IGuardedProps): JSX.Element {
  const trans = useTrans();
  const { elsewhere } = props;
  const { exposure, refusal } = React.useContext(CardGuard);
  const isCovered = useDelayed(exposure === 'covered', NOTE_DELAY);
  const link = elsewhere ? (
    <div className="jp-AgentBox-buttons">
      <button
        type="button"
        className="jp-AgentBox-button jp-mod-neutral"
        onClick={elsewhere.open}
      >
        {elsewhere.label}
      </button>
    </div>
  ) : null;
  if (exposure === 'embedded') {
    return (
      <>
        <p className="jp-AgentBox-note">
          {trans.__(
            'Inside a widget this card has no buttons, because the kernel could cover them.'
          )}
        </p>
        {link}
      </>
    );
  }
  return (
    <>
      {props.children}
      <div role="status">
        {isCovered ? (
          <p className="jp-AgentBox-warning">
            {trans.__(
              'Something covers part of this card, so its buttons are disabled. Close or move whatever covers it.'
            )}
          </p>
        ) : null}
        {refusal && !isCovered ? (
          <p className="jp-AgentBox-warning">{explain(refusal, trans)}</p>
        ) : null}
      </div>
      <KeyHelp {...props.keys} />
      {isCovered ? link : null}
    </>
  );
}

function explain(refusal: Refusal, trans: TranslationBundle): string {
  switch (refusal) {
    case 'moved':
      return trans.__(
        'That did not count: the card had just moved, or something covered it. Try again.'
      );
    case 'early':
      return trans.__(
        'That did not count: the focus had just come to this card. Wait a moment, and press the key again.'
      );
    case 'focus':
      return trans.__(
        'That did not count: the focus came to this card by itself, or while you were typing. Click the card or press Tab, and try again.'
      );
    case 'unseen':
      return trans.__(
        'That did not count: its button was out of view. Try again.'
      );
  }
}

function useCardGuard(
  root: React.RefObject<HTMLElement>,
  isGuarded: boolean,
  isInWidget: boolean
): ICardGuard {
  const [exposure, setExposure] = React.useState<Exposure>(
    isInWidget ? 'embedded' : 'hidden'
  );
  const [refusal, setRefusal] = React.useState<Refusal | null>(null);
  const watch = React.useRef<OcclusionWatch | null>(null);
  React.useLayoutEffect(() => {
    if (!root.current || !isGuarded || isInWidget) {
      return;
    }
    const watching = new OcclusionWatch(root.current, setExposure);
    watch.current = watching;
    return () => {
      watching.dispose();
      watch.current = null;
    };
  }, [root, isGuarded, isInWidget]);
  return React.useMemo(
    () => ({
      exposure,
      refusal,
      confirm: () => {
        const isExposed = watch.current?.look() === 'exposed';
        setRefusal(isExposed ? null : 'moved');
        return isExposed;
      },
      refuse: setRefusal
    }),
    [exposure, refusal]
  );
}

/** Whether something has been true for a while. */
function useDelayed(isNow: boolean, delay: number): boolean {
  const [isLong, setLong] = React.useState(false);
  React.useEffect(() => {
    setLong(false);
    if (!isNow) {
      return;
    }
    const timer = window.setTimeout(() => {
      setLong(true);
    }, delay);
    return () => {
      window.clearTimeout(timer);
    };
  }, [isNow, delay]);
  return isLong && isNow;
}
