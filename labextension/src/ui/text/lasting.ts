/**
 * Which lasting answers a request can be given, each with its scope in full.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IApproval, IGrantTerms } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';
import { describeRisk, riskOf } from './risk';
import { label } from './visibleText';

/** Whether a lasting answer allows or rejects. */
export type LastingKind = 'allow' | 'reject';

/** A lasting answer that can be given. */
export interface ILastingAnswer {
  label: string;
  /** Made when the answer is given: a time counts from then. */
  terms: (now: number) => IGrantTerms;
}

/** What decides which tools there are, and who is asked, is allowed once at a time. */
const NEVER = ['agentbox.register_mcp_server', 'notebook.set_approval_mode'];

const HOUR = 3_600_000;
const CALLS = 10;

/** Whether no answer that allows can last. */
export function isNeverGranted({ call }: IApproval): boolean {
  return NEVER.includes(qualifiedName(call));
}

/** Whether an answer that allows can last for one kernel only, as a rule of the site says. */
export function isForKernel({ evaluation }: IApproval): boolean {
  return evaluation.grants === 'kernel';
}

/** The lasting answers to a request, the narrowest first. */
export function lastingAnswers(
  approval: IApproval,
  kind: LastingKind,
  trans: TranslationBundle
): ILastingAnswer[] {
  if (kind === 'allow' && isNeverGranted(approval)) {
    return [];
  }
  const { call } = approval;
  const what = tool(approval, trans);
  const say = (allow: string, reject: string): string =>
    kind === 'allow' ? allow : reject;
  const answers: ILastingAnswer[] = [];
  const add = (text: string, terms: ILastingAnswer['terms']): void => {
    answers.push({ label: text, terms });
  };
  if (call.kernel_id) {
    add(
      say(
        trans.__('Allow this exact call of %1 until its kernel ends', what),
        trans.__('Reject this exact call of %1 until its kernel ends', what)
      ),
      () => ({ scope: 'call' })
    );
    add(
      say(
        trans.__('Allow %1 in this notebook until its kernel ends', what),
        trans.__('Reject %1 in this notebook until its kernel ends', what)
      ),
      () => ({ scope: 'kernel' })
    );
  }
  if (call.kernel_id && call.thread_id) {
    const isCode = qualifiedName(call) === 'notebook.run_code';
    add(
      isCode
        ? say(
            trans.__('Allow code of this agent thread until its kernel ends'),
            trans.__('Reject code of this agent thread until its kernel ends')
          )
        : say(
            trans.__(
              'Allow %1 for this agent thread until its kernel ends',
              what
            ),
            trans.__(
              'Reject %1 for this agent thread until its kernel ends',
              what
            )
          ),
      () => ({ scope: 'thread' })
    );
  }
  if (kind === 'reject' || !isForKernel(approval)) {
    add(
      say(
        trans.__('Allow %1 in all notebooks for 1 hour', what),
        trans.__('Reject %1 in all notebooks for 1 hour', what)
      ),
      now => ({ scope: 'user', until: new Date(now + HOUR).toISOString() })
    );
  }
  if (kind === 'allow' && !isForKernel(approval)) {
    add(forCalls(what, CALLS, trans), () => ({ scope: 'user', uses: CALLS }));
  }
  if (kind === 'allow' && call.kernel_id && isReadOnly(approval, trans)) {
    add(
      trans.__(
        'Allow the read-only tools of %1 in this notebook until its kernel ends',
        label(call.server, 60)
      ),
      () => ({ scope: 'server-read-only' })
    );
  }
  return answers;
}

/** Units of a time that a person chooses, in milliseconds. */
const UNITS = {
  minutes: 60_000,
  hours: HOUR,
  days: 24 * HOUR
} as const;

export type Unit = keyof typeof UNITS;

/** The longest time that can be chosen here: a rule is for what holds longer. */
const MOST_TIME = 30 * UNITS.days;
const MOST_CALLS = 1000;

/** What a person typed for a lasting answer; empty for no such end. */
export interface IChosenEnd {
  time: string;
  unit: Unit;
  calls: string;
}

/** The answer for this person's calls of the tool until an end that they chose, or what is wrong with it. */
export function chosenAnswer(
  approval: IApproval,
  kind: LastingKind,
  chosen: IChosenEnd,
  trans: TranslationBundle
): ILastingAnswer | string {
  const time = wholeNumber(chosen.time);
  const calls = wholeNumber(chosen.calls);
  const span = time === null ? null : time * UNITS[chosen.unit];
  if (span !== null && !(span > 0 && span <= MOST_TIME)) {
    return trans.__(
      'Enter the time as a whole number, at least 1 and at most 30 days.'
    );
  }
  if (calls !== null && !(calls >= 2 && calls <= MOST_CALLS)) {
    return trans.__('Enter a whole number of calls from 2 to %1.', MOST_CALLS);
  }
  if (span === null && calls === null) {
    return kind === 'allow'
      ? trans.__('Enter a time, a number of calls, or both.')
      : trans.__('Enter a time.');
  }
  const forTime = time === null ? '' : timeText(time, chosen.unit, trans);
  return {
    label: chosenLabel(kind, tool(approval, trans), forTime, calls, trans),
    terms: now => ({
      scope: 'user',
      ...(span === null ? {} : { until: new Date(now + span).toISOString() }),
      ...(calls === null ? {} : { uses: calls })
    })
  };
}

function chosenLabel(
  kind: LastingKind,
  what: string,
  forTime: string,
  calls: number | null,
  trans: TranslationBundle
): string {
  if (kind === 'reject') {
    return trans.__('Reject %1 in all notebooks for %2', what, forTime);
  }
  if (calls === null) {
    return trans.__('Allow %1 in all notebooks for %2', what, forTime);
  }
  return forTime
    ? trans._n(
        'Allow %2 in all notebooks for %3, but at most %1 call, including this one',
        'Allow %2 in all notebooks for %3, but at most %1 calls, including this one',
        calls,
        what,
        forTime
      )
    : forCalls(what, calls, trans);
}

function forCalls(
  what: string,
  calls: number,
  trans: TranslationBundle
): string {
  return trans._n(
    'Allow %2 in all notebooks for %1 call, including this one',
    'Allow %2 in all notebooks for %1 calls, including this one',
    calls,
    what
  );
}

function timeText(time: number, unit: Unit, trans: TranslationBundle): string {
  switch (unit) {
    case 'minutes':
      return trans._n('%1 minute', '%1 minutes', time);
    case 'hours':
      return trans._n('%1 hour', '%1 hours', time);
    case 'days':
      return trans._n('%1 day', '%1 days', time);
  }
}

/** The number that was typed in digits; `null` for nothing, and `NaN` for anything else. */
function wholeNumber(text: string): number | null {
  const digits = text.trim();
  if (digits === '') {
    return null;
  }
  return /^[0-9]{1,6}$/.test(digits) ? Number(digits) : NaN;
}

/** The tool by name; of one that destroys, that it does. */
function tool(approval: IApproval, trans: TranslationBundle): string {
  const name = label(qualifiedName(approval.call), 80);
  return riskOf(approval.tool.annotations) === 'destructive'
    ? trans.__('the destructive %1', name)
    : name;
}

function isReadOnly(approval: IApproval, trans: TranslationBundle): boolean {
  const { risk, isClaim } = describeRisk(approval, trans);
  return isClaim && risk === 'readonly';
}
