/**
 * What became of a request, in one line.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IApproval, IOutcome } from '../../api/protocol';
import type { NameOf } from './reviewers';
import { label } from './visibleText';

/** How a request is doing, for colours and icons. */
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
        text: trans.__(
          'Expired: nobody answered in time. The tool did not run.'
        )
      };
    case 'cancelled':
      return {
        mood: 'neutral',
        text: trans.__('Withdrawn before a decision. The tool did not run.')
      };
    case 'orphaned':
      return {
        mood: 'neutral',
        text: trans.__(
          'Its kernel went away before a decision. The tool did not run.'
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
  if (approval.decision) {
    return nameOf(approval.decision);
  }
  const { rule } = approval.evaluation;
  return rule ? trans.__('the rule “%1”', label(rule, 60)) : trans.__('a rule');
}

/** How long a call ran, for people. */
export function duration(outcome: IOutcome): string | null {
  if (!outcome.started_at || !outcome.finished_at) {
    return null;
  }
  const milliseconds =
    Date.parse(outcome.finished_at) - Date.parse(outcome.started_at);
  const seconds = Math.max(0, milliseconds / 1000);
  if (seconds < 1) {
    return `${Math.max(0, milliseconds)} ms`;
  }
  if (seconds < 60) {
    return `${seconds.toFixed(1)} s`;
  }
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

function approvedSummary(
  approval: IApproval,
  nameOf: NameOf,
  trans: TranslationBundle
): ISummary {
  const who = decidedBy(approval, nameOf, trans);
  const allowed = approval.decision?.arguments
    ? trans.__('Allowed with edited arguments by %1', who)
    : trans.__('Allowed by %1', who);
  const { outcome } = approval;
  switch (outcome?.state) {
    case undefined:
      return { mood: 'running', text: trans.__('%1. About to run.', allowed) };
    case 'running':
      return { mood: 'running', text: trans.__('%1. Running…', allowed) };
    case 'succeeded': {
      const span = outcome ? duration(outcome) : null;
      return {
        mood: 'good',
        text: span
          ? trans.__('%1. Done in %2.', allowed, span)
          : trans.__('%1. Done.', allowed)
      };
    }
    case 'failed': {
      const error = label(outcome?.error ?? '', 200);
      return {
        mood: 'bad',
        text: error
          ? trans.__('%1. It failed: %2', allowed, error)
          : trans.__('%1. It failed.', allowed)
      };
    }
    case 'cancelled':
      return {
        mood: 'neutral',
        text: trans.__('%1. Cancelled while it ran.', allowed)
      };
  }
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
