/**
 * The arrow beside a button that decides, and what it opens inside the card: lasting answers and other actions.
 *
 * They are no menu that lies over the card: what lies over a card turns its buttons off, and a press on one of these counts
 * as little as on the others before a person could have seen it.
 */
import React from 'react';

import type { IApproval, IGrantTerms } from '../../api/protocol';
import { useTrans } from '../context';
import { DecisionButton } from '../guarded/DecisionButton';
import { takesText } from '../guarded/keyGuard';
import { useScrollIntoView } from '../hooks/useScrollIntoView';
import { LockedButton, useWhyLocked } from '../locks';
import { LastingForm } from './LastingForm';
import { describeRisk, isGrave } from '../text/risk';
import { isForKernel, isNeverGranted, lastingAnswers } from '../text/lasting';
import type { LastingKind } from '../text/lasting';
import { projectFile } from '../text/projectTrust';

export interface ILastingToggleProps {
  kind: LastingKind;
  isOpen: boolean;
  /** Whether the keyboard has just closed what it opens: then it gets the focus. */
  isClosedByKey: boolean;
  /** The id of what it opens. */
  controls: string;
  onToggle: () => void;
}

/** Opens and closes the lasting answers; decides nothing. */
export function LastingToggle(props: ILastingToggleProps): JSX.Element {
  const trans = useTrans();
  const name =
    props.kind === 'allow'
      ? trans.__('Let it run more often…')
      : trans.__('Keep it from running…');
  const ref = React.useRef<HTMLButtonElement>(null);
  const { isClosedByKey } = props;
  React.useEffect(() => {
    if (isClosedByKey) {
      ref.current?.focus();
    }
  }, [isClosedByKey]);
  return (
    <button
      ref={ref}
      type="button"
      className="jp-AgentBox-button jp-AgentBox-lastingToggle"
      aria-label={name}
      aria-expanded={props.isOpen}
      aria-controls={props.isOpen ? props.controls : undefined}
      title={name}
      onClick={props.onToggle}
    >
      <span aria-hidden="true">{props.isOpen ? '▴' : '▾'}</span>
    </button>
  );
}

export interface ILastingAnswersProps {
  id: string;
  approval: IApproval;
  kind: LastingKind;
  /** Whether a part of the arguments was never shown. */
  hasUnseen: boolean;
  describedBy: string;
  isBusy: boolean;
  now?: () => number;
  onAnswer: (terms: IGrantTerms) => void;
  /** Opens the form for a comment. */
  onComment: () => void;
  /** Opens the form of a rule, prefilled from the request. */
  onMakeRule?: (effect: 'allow' | 'deny') => void;
  onClose: () => void;
}

/** One button for each lasting answer, which names its whole scope; Escape goes back. */
export function LastingAnswers(props: ILastingAnswersProps): JSX.Element {
  const trans = useTrans();
  const { approval, kind } = props;
  const root = React.useRef<HTMLDivElement>(null);
  const note = noteOf(props, trans);
  const whyNoGrants = useWhyLocked('grants');
  const why = kind === 'allow' ? whyNoGrants : '';
  const [isChoosing, setChoosing] = React.useState(false);
  /** Whether the form was open, so that its button gets the focus back. */
  const wasChoosing = React.useRef(false);
  wasChoosing.current ||= isChoosing;
  React.useEffect(() => {
    const first = root.current?.querySelector<HTMLElement>('button');
    (first ?? root.current)?.focus();
  }, []);
  useScrollIntoView(root, true);
  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      if (isChoosing) {
        setChoosing(false);
      } else {
        props.onClose();
      }
    } else if (takesText(event.target)) {
      return;
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      step(root.current, event.key === 'ArrowDown' ? 1 : -1);
    }
  };
  const choose =
    kind === 'allow'
      ? trans.__('Choose a time or a number of calls…')
      : trans.__('Choose a time…');
  const isWithoutChoice = kind === 'allow' && isForKernel(approval);
  const limit = kind === 'allow' ? limitOf(approval, trans) : '';
  const isCautious =
    kind === 'allow' && isGrave(describeRisk(approval, trans).risk);
  if (isChoosing && !note && !why) {
    return (
      <div
        id={props.id}
        className="jp-AgentBox-lasting"
        role="group"
        aria-label={
          kind === 'allow'
            ? trans.__('Allow until a time or a number of calls')
            : trans.__('Reject until a time')
        }
        onKeyDown={onKeyDown}
      >
        <LastingForm
          {...props}
          isCautious={isCautious}
          onCancel={() => {
            setChoosing(false);
          }}
        />
      </div>
    );
  }
  return (
    <div
      id={props.id}
      ref={root}
      className="jp-AgentBox-lasting"
      role="group"
      tabIndex={-1}
      aria-label={
        kind === 'allow'
          ? trans.__('More ways to allow')
          : trans.__('More ways to reject')
      }
      onKeyDown={onKeyDown}
    >
      {note || limit ? (
        <p className="jp-AgentBox-note">{note || limit}</p>
      ) : null}
      {note
        ? null
        : lastingAnswers(approval, kind, trans).map(answer =>
            why ? (
              <LockedButton key={answer.label} label={answer.label} why={why} />
            ) : (
              <DecisionButton
                key={answer.label}
                kind={isCautious ? 'caution' : 'neutral'}
                label={answer.label}
                describedBy={props.describedBy}
                isBusy={props.isBusy}
                onActivate={() => {
                  props.onAnswer(answer.terms((props.now ?? Date.now)()));
                }}
              />
            )
          )}
      {note || isWithoutChoice ? null : why ? (
        <LockedButton label={choose} why={why} />
      ) : (
        <DecisionButton
          kind="neutral"
          label={choose}
          isFocused={wasChoosing.current}
          onActivate={() => {
            setChoosing(true);
          }}
        />
      )}
      {kind === 'allow' ? (
        <DecisionButton
          kind="neutral"
          label={
            projectFile(approval)
              ? trans.__('Trust with a comment…')
              : trans.__('Allow once with a comment…')
          }
          onActivate={props.onComment}
        />
      ) : null}
      {props.onMakeRule && !note ? (
        <DecisionButton
          kind="neutral"
          label={trans.__('Make a rule…')}
          onActivate={() => {
            props.onMakeRule?.(kind === 'allow' ? 'allow' : 'deny');
          }}
        />
      ) : null}
    </div>
  );
}

/** Why no lasting answer is offered, if none is. */
function noteOf(
  { approval, kind, hasUnseen }: ILastingAnswersProps,
  trans: ReturnType<typeof useTrans>
): string {
  if (kind === 'allow' && projectFile(approval)) {
    return trans.__(
      'Trust lasts until you press “Stop trusting”, or the server’s entry changes.'
    );
  }
  if (kind === 'allow' && isNeverGranted(approval)) {
    return trans.__('This is asked about each time: no answer to it can last.');
  }
  return hasUnseen
    ? trans.__(
        'You have not seen all of the arguments, so only this call can be answered. Show them all to answer for longer, such as for an hour.'
      )
    : '';
}

/** What a rule that asks lets lasting answers do, if it limits them. The rules of an approval mode are written by nobody. */
function limitOf(
  { evaluation }: IApproval,
  trans: ReturnType<typeof useTrans>
): string {
  const { effect, rule, layer, grants } = evaluation;
  const isWritten = rule !== null && layer !== 'session' && layer !== 'thread';
  if (effect !== 'ask' || !isWritten || grants === 'any') {
    return '';
  }
  return grants === 'kernel'
    ? trans.__(
        'A rule lets you allow calls like this one until their kernel ends, and not for longer.'
      )
    : trans.__(
        'A rule asks about each call like this one. What you choose here counts for calls that it does not ask about.'
      );
}

function step(root: HTMLElement | null, by: 1 | -1): void {
  const buttons = [...(root?.querySelectorAll('button') ?? [])];
  const at = buttons.findIndex(button => button === document.activeElement);
  buttons[(at + by + buttons.length) % buttons.length]?.focus();
}
