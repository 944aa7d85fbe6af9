/**
 * Groups requests by what they have in common.
 */
import type { IApproval } from '../../api/protocol';

/** The requests of each key, in their order; the key of the first request comes first. */
export function grouped(
  approvals: readonly IApproval[],
  keyOf: (approval: IApproval) => string
): Map<string, IApproval[]> {
  const groups = new Map<string, IApproval[]>();
  for (const approval of approvals) {
    const key = keyOf(approval);
    const group = groups.get(key);
    if (group) {
      group.push(approval);
    } else {
      groups.set(key, [approval]);
    }
  }
  return groups;
}
