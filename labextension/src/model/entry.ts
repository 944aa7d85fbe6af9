/**
 * A request as known here, and which of two responses about it is current.
 */
import type { IApproval } from '../api/protocol';

/** Size up to which long arguments are fetched automatically, in bytes. */
const MAX_UNASKED = 1_000_000;

/** A known request: with the number of the fetch that it is from, and whether it is complete. */
export interface IEntry {
  approval: IApproval;
  question: number;
  isWhole: boolean;
}

/**
 * The newer entry, with the older one's object if nothing changed, and with its arguments if those of a wanted request
 * are missing.
 */
export function merged(
  after: IEntry,
  before: IEntry | undefined,
  isWanted: boolean
): IEntry {
  if (!before) {
    return after;
  }
  let { approval } = after;
  const { call } = before.approval;
  if (approval.call.omitted && !call.omitted && isWanted) {
    const { arguments: values, omitted, look_alikes } = call;
    const whole = { arguments: values, omitted, look_alikes };
    approval = { ...approval, call: { ...approval.call, ...whole } };
  }
  return {
    approval: isSame(approval, before.approval) ? before.approval : approval,
    question: after.question,
    isWhole: after.isWhole || (before.isWhole && !approval.call.omitted)
  };
}

/** Whether long arguments are short enough to be fetched as soon as the request is shown. */
export function isWorthFetching({ approval }: IEntry): boolean {
  const { omitted } = approval.call;
  return (
    approval.status === 'pending' &&
    omitted !== null &&
    omitted !== undefined &&
    omitted.size <= MAX_UNASKED
  );
}

/** Whether a response is older than what is known. */
export function isOvertaken(
  approval: IApproval,
  question: number,
  before: IEntry
): boolean {
  const steps = stage(approval) - stage(before.approval);
  return steps < 0 || (steps === 0 && question < before.question);
}

/** Whether two responses about a request are the same: compares everything that can change. */
function isSame(a: IApproval, b: IApproval): boolean {
  return (
    a.status === b.status &&
    a.expires_at === b.expires_at &&
    a.call.digest === b.call.digest &&
    a.tool.mark === b.tool.mark &&
    !a.call.omitted === !b.call.omitted &&
    a.decision?.decided_at === b.decision?.decided_at &&
    JSON.stringify(a.outcome) === JSON.stringify(b.outcome)
  );
}

/** Whether nothing more can happen to a request and its call. */
export function isEnded(approval: IApproval): boolean {
  return stage(approval) === 3;
}

/** How far a request has progressed; it never goes back. */
function stage(approval: IApproval): number {
  if (approval.status === 'pending') {
    return 0;
  }
  if (approval.status !== 'approved') {
    return 3;
  }
  if (!approval.outcome) {
    return 1;
  }
  return approval.outcome.state === 'running' ? 2 : 3;
}

/** Sorts requests by time, oldest first; within a millisecond, by the digits that a `Date` lacks. */
export function oldestFirst(a: IApproval, b: IApproval): number {
  return (
    Date.parse(a.created_at) - Date.parse(b.created_at) ||
    compare(a.created_at, b.created_at) ||
    compare(a.id, b.id)
  );
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
