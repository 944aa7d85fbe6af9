/**
 * Compares the summary of a request with what is known about the request.
 */
import type { IApproval, IRequestSummary, Status } from '../api/protocol';

/** The ways to end without an answer; the summary of such a request contains everything new. */
const LAPSED: readonly Status[] = ['cancelled', 'expired', 'orphaned'];

/** Whether a summary contains nothing new, so that the request need not be fetched again. */
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

/** The request of a summary, if it was last known as pending and has ended without an answer. */
export function lapsed(
  { status, digest, ended_at }: IRequestSummary,
  known: IApproval | undefined
): IApproval | null {
  const isKnown = known?.status === 'pending' && known.call.digest === digest;
  return isKnown && LAPSED.includes(status)
    ? { ...known, status, ended_at, tool: { ...known.tool, mark: null } }
    : null;
}
