/**
 * The words for a review at the Hub service: who is asked, and what they answered.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IHubReview } from '../../api/protocol';
import type { NameOf } from './reviewers';
import { label } from './visibleText';

/** Maximum length of a name, in characters. */
const LENGTH = 60;

/** Describe who is asked: “2 members of data-stewards”. */
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

/** List who has approved: “bob and cleo”; empty if nobody has. */
export function whoApproved(
  { approved_by }: IHubReview,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const names = approved_by.map(name => nameOf(person(name)));
  return joined(names, (one, next) => trans.__('%1 and %2', one, next));
}

/** Describe the approvals so far. */
export function countVotes(
  review: IHubReview,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const by = whoApproved(review, nameOf, trans);
  const { length } = review.approved_by;
  return by
    ? trans._n(
        '%1 of %2 approved: %3.',
        '%1 of %2 approved: %3.',
        length,
        review.count,
        by
      )
    : trans.__('Nobody has approved yet.');
}

/** Describe the outcome of the review; empty while it is pending. */
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
        'Too few people answered at the Hub in time. The tool did not run.'
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
  const by = name === null ? trans.__('a rule') : nameOf(person(name));
  const why = label(reason, 200);
  return why
    ? trans.__('Rejected at the Hub by %1: %2', by, why)
    : trans.__('Rejected at the Hub by %1. The tool did not run.', by);
}

/** The reviewer with a name. The service takes answers only from browsers that are logged in. */
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
