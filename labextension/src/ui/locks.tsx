/**
 * What the site's administrator turned off: its controls stay where they are, do nothing, and say why.
 *
 * The server refuses it in any case. While it is not known what is off, controls are as if nothing were.
 */
import React from 'react';

import type { FeatureName, IFeatureLock } from '../api/rules';
import { Locks, useTrans } from './context';
import { useFirstFocus } from './hooks/useFirstFocus';
import { useSignal } from './hooks/useSignal';
import { lockText } from './text/locks';

/** Who turned a feature off; `null` if nobody did. */
export function useLock(feature: FeatureName): IFeatureLock | null {
  const locks = React.useContext(Locks);
  useSignal(locks.changed);
  return locks.lockOf(feature);
}

/** Why a feature is off; empty if it is not. */
export function useWhyLocked(feature: FeatureName): string {
  const trans = useTrans();
  const lock = useLock(feature);
  return lock ? lockText(feature, lock, trans) : '';
}

export interface ILockedButtonProps {
  label: string;
  /** What a screen reader says, where that is more. */
  name?: string;
  /** Why it does nothing. */
  why: string;
  /** Whether the button takes the focus when it appears, because it takes the place of what had it. */
  isFocused?: boolean;
}

/** Stands for a button of what is off. It can have the focus, and a press only shows why it does nothing else. */
export function LockedButton(props: ILockedButtonProps): JSX.Element {
  const { label, name, why } = props;
  const id = React.useId();
  const ref = React.useRef<HTMLButtonElement>(null);
  const [isShown, setShown] = React.useState(false);
  useFirstFocus(ref, props.isFocused ?? false);
  return (
    <>
      <button
        type="button"
        ref={ref}
        className="jp-AgentBox-button jp-mod-neutral jp-mod-locked"
        aria-label={name}
        aria-disabled="true"
        aria-describedby={id}
        title={why}
        onClick={() => {
          setShown(!isShown);
        }}
      >
        {label}
      </button>
      <span id={id} className="jp-AgentBox-lockedReason" hidden={!isShown}>
        {why}
      </span>
    </>
  );
}

/** Says that a feature is off, where it has no control of its own; nothing if it is not. */
export function LockedNote(props: {
  feature: FeatureName;
}): JSX.Element | null {
  const why = useWhyLocked(props.feature);
  return why ? <p className="jp-AgentBox-note">{why}</p> : null;
}
