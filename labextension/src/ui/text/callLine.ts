/**
 * The call of a request in one line.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IApproval } from '../../api/protocol';
import { signature } from './signature';

/** Characters of the arguments in a line. */
const LINE = 80;

/** The call that ran, or would run: after edits, what they made of it. */
export function callLine(
  { call, decision }: IApproval,
  trans: TranslationBundle
): string {
  if (call.omitted && !decision?.arguments) {
    return `${signature(call.tool, {}, trans).text.slice(0, -1)}…)`;
  }
  const values = decision?.arguments ?? call.arguments;
  return signature(call.tool, values, trans, LINE).text;
}
