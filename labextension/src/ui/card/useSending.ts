/**
 * Sends a person's answer and describes the result.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { RequestError } from '../../api/errors';
import { isEqual } from '../../api/json';
import { useNameOf, useTrans } from '../context';
import type { IApproval } from '../../api/protocol';
import type { NameOf } from '../text/reviewers';
import { decidedBy } from '../text/summary';
import type { PersonalAnswer } from '../../internalTokens';
import { label } from '../text/visibleText';
import { messageOf } from '../text/messages';

/** The server's objection to edited arguments. */
export interface IArgumentError {
  parameter: string | null;
  message: string;
}

/** Why an answer was not accepted. */
interface IFailure {
  text: string;
  /** Whether the request had already ended, which its final card should say. */
  isLate: boolean;
}

/** An answer in progress, and why the last one was not accepted. */
export interface ISending {
  send: (answer: PersonalAnswer) => void;
  /** Report if the request ended while a form was open, in which a person had typed this. */
  interrupt: (typed: string) => void;
  /** Clear the server's objection, which was about other arguments. */
  forget: () => void;
  isBusy: boolean;
  failure: string | null;
  /** What was typed in a form that was open as the request ended. */
  typed: string;
  argumentError: IArgumentError | null;
}

/** Send answers to a request, one at a time. */
export function useSending(
  approval: IApproval,
  onDecide: (shown: IApproval, answer: PersonalAnswer) => Promise<void>,
  present: () => IApproval | null,
  onFailure?: (text: string, typed: string) => void
): ISending {
  const trans = useTrans();
  const nameOf = useNameOf();
  const [isBusy, setBusy] = React.useState(false);
  const [failure, setFailure] = React.useState<IFailure | null>(null);
  /** The answer of which it is unknown whether the server accepted it. */
  const [unsure, setUnsure] = React.useState<PersonalAnswer | null>(null);
  const [typed, setTyped] = React.useState('');
  const [argumentError, setArgumentError] =
    React.useState<IArgumentError | null>(null);

  const fail = (text: string, isLate: boolean, lost = ''): void => {
    setFailure({ text, isLate });
    setTyped(lost);
    onFailure?.(text, lost);
  };
  const interrupt = (lost: string): void => {
    const text = interruption(present(), nameOf, trans);
    if (text) {
      fail(text, true, lost);
    }
  };
  const send = (answer: PersonalAnswer): void => {
    setBusy(true);
    setFailure(null);
    setArgumentError(null);
    onDecide(approval, answer)
      .catch((error: unknown) => {
        if (error instanceof RequestError && error.status === 422) {
          const { message, parameter } = error;
          setArgumentError({ message: label(message, 500), parameter });
        } else if (!(unsure && isTaken(unsure, error))) {
          setUnsure(isAnswered(error) ? null : answer);
          fail(explain(error, nameOf, trans), isTooLate(error));
        }
      })
      .finally(() => {
        setBusy(false);
      });
  };
  // The card of a request that has ended shows its outcome, and advice on what to do no longer applies.
  const isShown = approval.status === 'pending' || failure?.isLate;
  const text = isShown ? (failure?.text ?? null) : null;
  const forget = (): void => {
    setArgumentError(null);
  };
  return {
    send,
    interrupt,
    forget,
    isBusy,
    failure: text,
    typed,
    argumentError
  };
}

/** Whether an answer arrived after the request had been decided or had ended. */
function isTooLate(error: unknown): boolean {
  const present = error instanceof RequestError ? error.approval : null;
  return present !== null && present.status !== 'pending';
}

/** Whether the server has reported what it did with an answer. */
function isAnswered(error: unknown): boolean {
  return error instanceof RequestError && error.status < 500;
}

/** Whether a conflict is with the same answer that was sent before, whose response was lost. */
function isTaken(sent: PersonalAnswer, error: unknown): boolean {
  const decision =
    error instanceof RequestError ? error.approval?.decision : null;
  return (
    decision?.decision === sent.decision &&
    (sent.decision !== 'reject_once' || decision.reason === sent.reason) &&
    (sent.decision !== 'allow_once' ||
      (decision.reason === (sent.reason ?? '') &&
        isEqual(decision.arguments ?? null, sent.arguments ?? null)))
  );
}

/** Describe how a request ended while a person was answering; `null` if it did not. */
export function interruption(
  present: IApproval | null,
  nameOf: NameOf,
  trans: TranslationBundle
): string | null {
  if (!present) {
    return null;
  }
  switch (present.status) {
    case 'pending':
      return null;
    case 'expired':
      return trans.__('This request expired while you were answering.');
    case 'cancelled':
      return trans.__(
        'The cell was interrupted, or its code withdrew this request, while you were answering.'
      );
    case 'orphaned':
      return trans.__(
        'The kernel stopped or restarted while you were answering.'
      );
    default:
      return trans.__(
        'Already decided by %1 while this form was open.',
        decidedBy(present, nameOf, trans)
      );
  }
}

/** Describe why an answer was not accepted. */
export function explain(
  error: unknown,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  if (error instanceof RequestError && error.status === 409) {
    return conflict(error.approval, nameOf, trans);
  }
  if (error instanceof RequestError && error.reason === 'needs_person') {
    return trans.__(
      'Only a browser that is logged in can decide here. Your login has ended, or this page was opened with a token. Log in again in another tab, then try again here: what you typed is kept.'
    );
  }
  if (error instanceof RequestError && error.reason === 'not_a_decider') {
    return trans.__(
      'You can use this server, but only its owner, or somebody with the right to, decides here. The request still waits.'
    );
  }
  if (error instanceof RequestError && error.reason === 'not_authorized') {
    return trans.__(
      'You do not have the right to give this answer here: %1 The request still waits.',
      messageOf(error, 300)
    );
  }
  if (error instanceof RequestError && error.status === 403) {
    return trans.__(
      'The server refused your answer. If your login has ended, log in again in another tab and try again here: what you typed is kept. Otherwise you are not allowed to decide this request.'
    );
  }
  const why = messageOf(error, 300);
  if (error instanceof RequestError && error.status === 404) {
    return trans.__('This request is no longer on the server.');
  }
  if (error instanceof RequestError) {
    return trans.__(
      'The server answered with an error (%1). Check what became of the request before you try again.',
      why
    );
  }
  return trans.__(
    'The server did not reply (%1), so your answer may not have reached it. Try again: no request is decided twice.',
    why
  );
}

function conflict(
  present: IApproval | null,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  if (present?.decision) {
    return trans.__(
      'Already decided by %1. Your answer was discarded.',
      decidedBy(present, nameOf, trans)
    );
  }
  return present && present.status !== 'pending'
    ? trans.__('The request had already ended. Your answer was discarded.')
    : trans.__(
        'The request changed, so your answer was discarded. Please review it again.'
      );
}
