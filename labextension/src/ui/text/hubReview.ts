/**
 * Whom the Hub service asks before a central tool runs, and what they answered, in words.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IHubReview } from '../../api/protocol';
import type { NameOf } from './reviewers';
import { label } from './visibleText';

/** The longest name that is shown whole. */
const LENGTH = 60;

/** Say who is asked: “2 members of data-stewards”. */
export function whoIsAsked(
  { groups, count }: IHubReview,
  trans: TranslationBundle
): string {
  if (groups.length === 0) {
    return trans.__('you');
  }
  const names = groups.map(group => label(group, LENGTH));
  const some = joined(names, (one, next) => trans.__('%1 or %2', one, next));
  return trans._n('a member of %2', '%1 members of %2', count, some);
}

/** Say who has approved: “bob and cleo”; empty if nobody has. */
export function whoApproved(
  { approved_by }: IHubReview,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const names = approved_by.map(name => nameOf(person(name)));
  return joined(names, (one, next) => trans.__('%1 and %2', one, next));
}

/** Say how many of those who are asked have approved, and who. */
export function countVotes(
  review: IHubReview,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const by = whoApproved(review, nameOf, trans);
  const { length } = review.approved_by;
  return by
    ? trans.__('%1 of %2 approved: %3.', length, review.count, by)
    : trans.__('Nobody has approved yet.');
}

/** Say what became of it; empty while they are asked. */
export function describeReview(
  review: IHubReview,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const by = whoApproved(review, nameOf, trans);
  switch (review.status) {
    case 'pending':
      return '';
    case 'approved':
      return by ? trans.__('Approved at the Hub by %1.', by) : '';
    case 'rejected':
      return rejection(review, nameOf, trans);
    case 'expired':
      return trans.__(
        'At the Hub nobody answered in time, or too few. The tool did not run.'
      );
    default:
      return trans.__('Withdrawn at the Hub. The tool did not run.');
  }
}

function rejection(
  { rejected_by: name, reason }: IHubReview,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const by = name === null ? trans.__('somebody') : nameOf(person(name));
  const why = label(reason, 200);
  return why
    ? trans.__('Rejected at the Hub by %1: %2', by, why)
    : trans.__('Rejected at the Hub by %1. The tool did not run.', by);
}

/** Only a browser's session answers at the service. */
function person(reviewer: string): Parameters<NameOf>[0] {
  return {
    reviewer,
    reviewer_kind: 'user',
    reviewer_name: null,
    via: 'browser'
  };
}

function joined(
  names: readonly string[],
  join: (one: string, next: string) => string
): string {
  return names.reduce((some, name) => (some ? join(some, name) : name), '');
}
