/**
 * What the summary of a request says that is new of the request as it is known.
 */
import type { IApproval, IRequestSummary, Status } from '../api/protocol';

/** What ended without an answer; the summary of such a request says all that is new. */
const LAPSED: readonly Status[] = ['cancelled', 'expired', 'orphaned'];

/** Whether nothing is new in a summary: then the request need not be asked for again. */
export function isAsKnown(
  { status, digest, expires_at }: IRequestSummary,
  known: IApproval | undefined
): boolean {
  return (
    known?.status === status &&
    known.expires_at === expires_at &&
    known.call.digest === digest
  );
}

/** The request of a summary, if it was pending when it was heard of last, and ended without an answer. */
export function lapsed(
  { status, digest, ended_at }: IRequestSummary,
  known: IApproval | undefined
): IApproval | null {
  const isKnown = known?.status === 'pending' && known.call.digest === digest;
  return isKnown && LAPSED.includes(status)
    ? { ...known, status, ended_at, tool: { ...known.tool, mark: null } }
    : null;
}
