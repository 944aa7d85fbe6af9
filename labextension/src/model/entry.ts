/**
 * A request as the store knows it, and which of two answers about it holds.
 */
import type { IApproval } from '../api/protocol';

/** Bytes of long arguments that are fetched without being asked for. */
const MAX_UNASKED = 1_000_000;

/** A request as it is known: from the answer to which question, and whether with all that the server has. */
export interface IEntry {
  approval: IApproval;
  question: number;
  isWhole: boolean;
}

/**
 * The newer entry, with the object of the older one where nothing changed, and with its arguments where those of a
 * wanted request are lacking.
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

/** Whether long arguments are short enough to be fetched because the request is shown. */
export function isWorthFetching({ approval }: IEntry): boolean {
  const { omitted } = approval.call;
  return (
    approval.status === 'pending' &&
    omitted !== null &&
    omitted !== undefined &&
    omitted.size <= MAX_UNASKED
  );
}

/** Whether an answer is older than what is known. */
export function isOvertaken(
  approval: IApproval,
  question: number,
  before: IEntry
): boolean {
  const steps = stage(approval) - stage(before.approval);
  return steps < 0 || (steps === 0 && question < before.question);
}

/** Whether two answers about one request say the same: all that can change is in these. */
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

/** How far a request is on its way; it never goes back. */
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

/** Sorts requests by their time, the oldest first; those of one millisecond by the digits that a `Date` does not have. */
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
