/**
 * The call of a request in one line.
 */
import type { IApproval } from '../../api/protocol';
import { signature } from './signature';

/** Characters of the arguments in a line. */
const LINE = 80;

/** The call that ran, or would run: after edits, what they made of it. */
export function callLine({ call, decision }: IApproval): string {
  if (call.omitted && !decision?.arguments) {
    return `${signature(call.tool, {}).text.slice(0, -1)}…)`;
  }
  return signature(call.tool, decision?.arguments ?? call.arguments, LINE).text;
}
