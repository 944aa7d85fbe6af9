/**
 * The line that a notebook keeps of a request that is over, where the kernel could not write it. It is English in every
 * language, as the kernel's, and has only the arguments that the server allows a notebook to save.
 */
import type { IApproval, IOutcome, IReviewer } from '../../api/protocol';
import { hasNotRun, qualifiedName } from '../../api/protocol';
import { isMadeUp } from './reviewers';
import { label } from './visibleText';

/** How the kernel's text begins to end that says that a request waits. */
const WAITS = ' is waiting for approval. Allow, edit or reject it ';

/** Maximum length of a call in characters, as on the server. */
const CALL = 400;

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
  const call = approval.saved ? label(approval.saved.call, CALL) : `${name}(…)`;
  return ending === null ? null : `${sign} ${call} — ${ending}`;
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
      const edited = decision?.arguments ? `edited${replaced(approval)}, ` : '';
      return `${edited}allowed${who(approval)}${howItEnded(outcome)}`;
    }
    case 'rejected': {
      const reason = label(decision?.reason ?? '', 400);
      const why = reason ? `, ${reason}` : '';
      return `rejected${who(approval)}${why}; did not run`;
    }
    case 'expired':
      return 'expired: nobody decided in time, did not run';
    case 'cancelled':
      return 'withdrawn by the code before anybody decided; did not run';
    case 'orphaned':
      return 'the kernel or the server stopped before anybody decided; did not run';
  }
}

function howItEnded(outcome: IOutcome): string {
  if (outcome.state === 'succeeded') {
    return '';
  }
  if (hasNotRun(outcome)) {
    return '; did not run';
  }
  return outcome.state === 'failed'
    ? ', the tool failed'
    : ', cancelled while it ran';
}

function replaced({ saved }: IApproval): string {
  const asked = label(saved?.replaced ?? '', CALL);
  return asked ? ` (the code asked for ${asked})` : '';
}

function who({ decision }: IApproval): string {
  if (!decision) {
    return ' by a rule';
  }
  return ` by ${nameInFiles(decision)}, ${localTime(decision.decided_at)}`;
}

/** Who answered, in the words of the kernel's lines; without a Hub, Jupyter makes up a user for each login. */
function nameInFiles(reviewer: IReviewer): string {
  const { reviewer: username, reviewer_kind: kind, via } = reviewer;
  if (kind === 'service') {
    return `the service ${label(username, 80)}`;
  }
  const user = isMadeUp(username) ? `user ${username.slice(0, 6)}` : username;
  const name = label(reviewer.reviewer_name ?? user, 80);
  switch (via) {
    case 'api_token':
      return isMadeUp(username)
        ? "a program with the server's token"
        : `a program with a token of ${name}${noteOf(reviewer)}`;
    case 'server_token':
      return "a program with the server's own token";
    case 'program':
      return `a program run by ${name}`;
    case 'mcp_client':
      return `an MCP client run by ${name}`;
    case 'terminal':
      return `${name} in the terminal`;
    case 'nobody':
      return 'a program that had nobody to ask';
    case 'model':
      return `the model ${name.replace(/^model:/, '')}`;
    default:
      return name;
  }
}

function localTime(iso: string): string {
  const at = new Date(iso);
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())];
  return `${day.join('-')} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

function noteOf({ token_note: note }: IReviewer): string {
  return note ? ` (“${label(note, 80)}”)` : '';
}
