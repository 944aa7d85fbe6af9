/**
 * What became of a request, in one line.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import { hasNotRun, isChange, isCodeRun, waitsAtHub } from '../../api/protocol';
import type { IApproval, IOutcome } from '../../api/protocol';
import { describeUse } from './grants';
import { describeReview } from './hubReview';
import type { NameOf } from './reviewers';
import { label } from './visibleText';
import { describeSeconds } from './duration';

/** How a request is doing, for colors and icons. */
export type Mood = 'waiting' | 'running' | 'good' | 'bad' | 'neutral';

/** What became of a request, in one line. */
export interface ISummary {
  mood: Mood;
  text: string;
}

/** Say what became of a request. */
export function summarize(
  approval: IApproval,
  nameOf: NameOf,
  trans: TranslationBundle
): ISummary {
  switch (approval.status) {
    case 'pending':
      return { mood: 'waiting', text: trans.__('Waiting for a decision') };
    case 'approved':
      return approvedSummary(approval, nameOf, trans);
    case 'rejected':
      return { mood: 'bad', text: rejectedText(approval, nameOf, trans) };
    case 'expired':
      return {
        mood: 'neutral',
        text: trans.__('Expired without an answer. The tool did not run.')
      };
    case 'cancelled':
      return {
        mood: 'neutral',
        text: trans.__(
          'Withdrawn by the code or an interrupt before a decision. The tool did not run.'
        )
      };
    case 'orphaned':
      return {
        mood: 'neutral',
        text: trans.__(
          'The kernel stopped or restarted before a decision. The tool did not run.'
        )
      };
  }
}

/** Who allowed or rejected a request. */
export function decidedBy(
  approval: IApproval,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const { rule, grant } = approval.evaluation;
  const { decision } = approval;
  const used =
    grant ?? (decision?.decision.endsWith('_once') ? decision.grant : null);
  if (used) {
    return describeUse(used, nameOf, trans);
  }
  if (decision?.rule) {
    const name = label(decision.rule.rule, 60);
    const who = nameOf(decision);
    return who === trans.__('you')
      ? trans.__('the rule “%1” that you wrote', name)
      : trans.__('the rule “%1” that %2 wrote', name, who);
  }
  if (decision) {
    return nameOf(decision);
  }
  return rule ? trans.__('the rule “%1”', label(rule, 60)) : trans.__('a rule');
}

/** How long a call ran, in words; `null` if that is unknown. */
function duration(
  { started_at, finished_at }: IOutcome,
  trans: TranslationBundle
): string | null {
  if (!started_at || !finished_at) {
    return null;
  }
  const milliseconds = Date.parse(finished_at) - Date.parse(started_at);
  return describeSeconds(Math.max(0, milliseconds / 1000), trans);
}

function approvedSummary(
  approval: IApproval,
  nameOf: NameOf,
  trans: TranslationBundle
): ISummary {
  const who = decidedBy(approval, nameOf, trans);
  if (isChange(approval.call)) {
    return { mood: 'good', text: trans.__('Done by %1.', who) };
  }
  const allowed = describeAllowance(approval, who, trans);
  const { outcome } = approval;
  const review = outcome?.review;
  const atHub = review ? describeReview(review, nameOf, trans) : '';
  const then = (mood: Mood, sentence: string): ISummary => ({
    mood,
    text: [allowed, atHub, sentence].filter(Boolean).join(' ')
  });
  if (waitsAtHub(approval)) {
    return then('running', trans.__('Waiting for approval at the Hub…'));
  }
  if (outcome?.state === 'failed' && hasNotRun(outcome)) {
    return then('bad', ''); // the tool's error says nothing more
  }
  switch (outcome?.state) {
    case undefined:
      return then('running', trans.__('Starting…'));
    case 'running':
      return then('running', trans.__('Running…'));
    case 'succeeded': {
      const span = outcome ? duration(outcome, trans) : null;
      return then(
        'good',
        span ? describeSpan(approval, span, trans) : trans.__('Done.')
      );
    }
    case 'failed': {
      const error = label(outcome?.error ?? '', 200);
      return then(
        'bad',
        error ? trans.__('It failed: %1', error) : trans.__('It failed.')
      );
    }
    case 'cancelled':
      return then('neutral', describeEnd(outcome, trans));
  }
}

/** How far a cancelled call came. */
function describeEnd(outcome: IOutcome, trans: TranslationBundle): string {
  if (hasNotRun(outcome)) {
    return trans.__('It did not run: the code no longer waited for it.');
  }
  return outcome.review?.status === 'pending'
    ? trans.__('Cancelled while it was waiting for approval at the Hub.')
    : trans.__('Cancelled while it ran.');
}

/** Code may have waited, for decisions about what it calls, and a call for approval at the Hub: not all of it was work. */
function describeSpan(
  { call, outcome }: IApproval,
  span: string,
  trans: TranslationBundle
): string {
  if (call.server === 'notebook' && call.tool === 'run_code') {
    return trans.__('Done %1 after it started.', span);
  }
  return outcome?.review && outcome.review.approved_by.length > 0
    ? trans.__('Done in %1, with the wait for approval at the Hub.', span)
    : trans.__('Done in %1.', span);
}

function describeAllowance(
  { call, decision, evaluation }: IApproval,
  by: string,
  trans: TranslationBundle
): string {
  if (!decision && evaluation.asks_group !== undefined) {
    return trans.__('The Hub is asked because of %1.', by);
  }
  const comment = label(decision?.reason ?? '', 200);
  const who = comment ? trans.__('%1 (“%2”)', by, comment) : by;
  if (!decision?.arguments) {
    return trans.__('Allowed by %1.', who);
  }
  return isCodeRun(call)
    ? trans.__('Allowed with edited code by %1.', who)
    : trans.__('Allowed with edited arguments by %1.', who);
}

function rejectedText(
  approval: IApproval,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const who = decidedBy(approval, nameOf, trans);
  const reason = label(approval.decision?.reason ?? '', 200);
  return reason
    ? trans.__('Rejected by %1: %2', who, reason)
    : trans.__('Rejected by %1. The tool did not run.', who);
}
