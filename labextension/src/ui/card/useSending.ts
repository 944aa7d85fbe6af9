/**
 * Sends a person's answer and says in words what came of it.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { RequestError } from '../../api/client';
import { useNameOf, useTrans } from '../context';
import type { IApproval } from '../../api/protocol';
import type { NameOf } from '../text/reviewers';
import { decidedBy } from '../text/summary';
import type { PersonalAnswer } from '../../tokens';
import { label } from '../text/visibleText';

/** What the server found wrong with edited arguments. */
export interface IArgumentError {
  parameter: string | null;
  message: string;
}

/** An answer on its way, and why the last one was not taken. */
export interface ISending {
  send: (answer: PersonalAnswer) => void;
  /** Say that the answer under way has become pointless. */
  fail: (text: string) => void;
  isBusy: boolean;
  failure: string | null;
  argumentError: IArgumentError | null;
}

/** Send answers to a request, one at a time. */
export function useSending(
  approval: IApproval,
  onDecide: (shown: IApproval, answer: PersonalAnswer) => Promise<void>,
  onFailure?: (text: string) => void
): ISending {
  const trans = useTrans();
  const nameOf = useNameOf();
  const [isBusy, setBusy] = React.useState(false);
  const [failure, setFailure] = React.useState<string | null>(null);
  const [argumentError, setArgumentError] =
    React.useState<IArgumentError | null>(null);

  const fail = (text: string): void => {
    setFailure(text);
    onFailure?.(text);
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
        } else {
          fail(explain(error, nameOf, trans));
        }
      })
      .finally(() => {
        setBusy(false);
      });
  };
  return { send, fail, isBusy, failure, argumentError };
}

/** Say why an answer was not taken. */
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
      'Only a browser that is logged in can decide here, and this page was opened with a token. Log in, and reload the page.'
    );
  }
  if (error instanceof RequestError && error.status === 403) {
    return trans.__('You are not allowed to decide this request.');
  }
  const why = label(error instanceof Error ? error.message : '', 300);
  if (error instanceof RequestError && error.status === 404) {
    return trans.__('This server has no such approval request any more.');
  }
  if (error instanceof RequestError) {
    return trans.__(
      'The server answered with an error (%1). Look at what became of the request before you try again.',
      why
    );
  }
  return trans.__(
    'The answer did not reach the server (%1). Nothing is lost: try again.',
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
      'Already decided by %1. Your answer was not used.',
      decidedBy(present, nameOf, trans)
    );
  }
  return present && present.status !== 'pending'
    ? trans.__('The request was already closed. Your answer was not used.')
    : trans.__(
        'The request changed, so your answer was not used. Look at it again.'
      );
}
