/**
 * The line that a notebook keeps of a request that is over, where the kernel could not write it. It is English in every
 * language, as the kernel's, and has no arguments: this page does not know whether the file may have them.
 */
import type { IApproval } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';
import { label } from './visibleText';

/** How the kernel's text begins to end that says that a request waits. */
const WAITS = ' is waiting for approval. Allow, edit or reject it ';

/** Whether a saved text says that a request waits. */
export function saysThatItWaits(text: unknown): boolean {
  return typeof text === 'string' && text.includes(WAITS);
}

/** What became of a request; `null` while that is open. */
export function savedLine(approval: IApproval): string | null {
  const ending = endingOf(approval);
  const isDone = approval.outcome?.state === 'succeeded';
  const sign = isDone ? '✓' : '✗';
  const name = label(qualifiedName(approval.call));
  return ending === null ? null : `${sign} ${name}(…) — ${ending}`;
}

function endingOf(approval: IApproval): string | null {
  const { decision, outcome } = approval;
  switch (approval.status) {
    case 'pending':
      return null;
    case 'approved': {
      if (!outcome || outcome.state === 'running') {
        return null;
      }
      const edited = decision?.arguments ? 'edited, ' : '';
      const failed = outcome.state === 'succeeded' ? '' : ', the tool failed';
      return `${edited}allowed${who(approval)}${failed}`;
    }
    case 'rejected': {
      const reason = label(decision?.reason ?? '', 400);
      const why = reason ? `, ${reason}` : '';
      return `rejected${who(approval)}${why}; did not run`;
    }
    case 'expired':
      return 'expired: nobody decided in time, did not run';
    default:
      return `${approval.status}, did not run`;
  }
}

function who({ decision }: IApproval): string {
  if (!decision) {
    return ' by a rule';
  }
  const name = label(decision.reviewer_name ?? decision.reviewer, 80);
  return ` by ${name}, ${localTime(decision.decided_at)}`;
}

function localTime(iso: string): string {
  const at = new Date(iso);
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())];
  return `${day.join('-')} ${two(at.getHours())}:${two(at.getMinutes())}`;
}
