/**
 * Sends one answer to many requests, and keeps why it was not accepted for some of them.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IApproval, IDecisionAnswer } from '../../api/protocol';
import { explain } from '../../ui/card/useSending';
import { useCardContext, useNameOf, useTrans } from '../../ui/context';
import { label } from '../../ui/text/visibleText';
import type { PersonalAnswer } from '../../internalTokens';

export interface IBatchSending {
  isBusy: boolean;
  /** Why the last answer to a request that is still pending was not accepted. */
  failures: ReadonlyMap<string, string>;
  fail: (id: string, text: string, typed: string) => void;
  /** Resolves to whether none of the requests is left to answer again. */
  send: (
    shown: readonly IApproval[],
    answer: PersonalAnswer
  ) => Promise<boolean>;
}

/** `onFailure` is told why answers to requests that are over were not accepted, and what was typed for one. */
export function useBatchSending(
  onFailure: (text: string, typed?: string) => void
): IBatchSending {
  const trans = useTrans();
  const nameOf = useNameOf();
  const { model, answered } = useCardContext();
  const [isBusy, setBusy] = React.useState(false);
  const [failures, setFailures] = React.useState<ReadonlyMap<string, string>>(
    new Map()
  );
  const latest = React.useRef(onFailure);
  latest.current = onFailure;
  const fail = React.useCallback((id: string, text: string, typed: string) => {
    setFailures(before => new Map([...before, [id, text]]));
    if (typed) {
      latest.current(text, typed); // the row has no place for it
    }
  }, []);
  const send = async (
    shown: readonly IApproval[],
    answer: PersonalAnswer
  ): Promise<boolean> => {
    setBusy(true);
    setFailures(new Map());
    answered?.();
    try {
      const answers = await model.decideAll(shown, answer);
      const refused = answers.filter(({ code }) => code !== 200);
      setFailures(
        new Map(refused.map(one => [one.id, describeFailure(one, trans)]))
      );
      const late = refused.filter(({ status }) => status !== 'pending');
      if (late.length > 0) {
        latest.current(
          trans._n(
            '%1 request had been decided or had ended before your answer came, which was discarded.',
            '%1 requests had been decided or had ended before your answer came, which was discarded.',
            late.length
          )
        );
      }
      return late.length === refused.length;
    } catch (error) {
      latest.current(explain(error, nameOf, trans));
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, failures, fail, send };
}

/** Why one of many answers was not accepted. */
function describeFailure(
  { status, message }: IDecisionAnswer,
  trans: TranslationBundle
): string {
  return status === 'pending'
    ? trans.__('Not decided: %1', label(message, 300))
    : trans.__('Already over: your answer was discarded.');
}
