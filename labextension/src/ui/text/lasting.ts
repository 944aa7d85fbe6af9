/**
 * Which lasting answers a request can be given, each with its scope in full.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IApproval, IGrantTerms } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';
import { describeRisk, riskOf } from './risk';
import { label } from './visibleText';

/** Whether a lasting answer allows or rejects. */
export type LastingKind = 'allow' | 'reject';

/** A lasting answer that can be given. */
export interface ILastingAnswer {
  label: string;
  /** Made when the answer is given: a time counts from then. */
  terms: (now: number) => IGrantTerms;
}

/** What decides which tools there are, and who is asked, is allowed once at a time. */
const NEVER = ['agentbox.register_mcp_server', 'notebook.set_approval_mode'];

const HOUR = 3_600_000;
const CALLS = 10;

/** Whether no answer that allows can last. */
export function isNeverGranted({ call }: IApproval): boolean {
  return NEVER.includes(qualifiedName(call));
}

/** The lasting answers to a request, the narrowest first. */
export function lastingAnswers(
  approval: IApproval,
  kind: LastingKind,
  trans: TranslationBundle
): ILastingAnswer[] {
  if (kind === 'allow' && isNeverGranted(approval)) {
    return [];
  }
  const { call } = approval;
  const what = tool(approval, trans);
  const say = (allow: string, reject: string): string =>
    kind === 'allow' ? allow : reject;
  const answers: ILastingAnswer[] = [];
  const add = (text: string, terms: ILastingAnswer['terms']): void => {
    answers.push({ label: text, terms });
  };
  if (call.kernel_id) {
    add(
      say(
        trans.__('Allow this exact call of %1 until its kernel ends', what),
        trans.__('Reject this exact call of %1 until its kernel ends', what)
      ),
      () => ({ scope: 'call' })
    );
    add(
      say(
        trans.__('Allow %1 in this notebook until its kernel ends', what),
        trans.__('Reject %1 in this notebook until its kernel ends', what)
      ),
      () => ({ scope: 'kernel' })
    );
  }
  if (call.kernel_id && call.thread_id) {
    const isCode = qualifiedName(call) === 'notebook.run_code';
    add(
      isCode
        ? say(
            trans.__('Allow code of this agent thread until its kernel ends'),
            trans.__('Reject code of this agent thread until its kernel ends')
          )
        : say(
            trans.__(
              'Allow %1 for this agent thread until its kernel ends',
              what
            ),
            trans.__(
              'Reject %1 for this agent thread until its kernel ends',
              what
            )
          ),
      () => ({ scope: 'thread' })
    );
  }
  add(
    say(
      trans.__('Allow %1 in all notebooks for 1 hour', what),
      trans.__('Reject %1 in all notebooks for 1 hour', what)
    ),
    now => ({ scope: 'user', until: new Date(now + HOUR).toISOString() })
  );
  if (kind === 'allow') {
    add(
      trans.__(
        'Allow %1 in all notebooks for %2 calls, with this one',
        what,
        CALLS
      ),
      () => ({ scope: 'user', uses: CALLS })
    );
  }
  if (kind === 'allow' && call.kernel_id && isReadOnly(approval, trans)) {
    add(
      trans.__(
        'Allow the read-only tools of %1 in this notebook until its kernel ends',
        label(call.server, 60)
      ),
      () => ({ scope: 'server-read-only' })
    );
  }
  return answers;
}

/** The tool by name; of one that destroys, that it does. */
function tool(approval: IApproval, trans: TranslationBundle): string {
  const name = label(qualifiedName(approval.call), 80);
  return riskOf(approval.tool.annotations) === 'destructive'
    ? trans.__('the destructive %1', name)
    : name;
}

function isReadOnly(approval: IApproval, trans: TranslationBundle): boolean {
  const { risk, isClaim } = describeRisk(approval, trans);
  return isClaim && risk === 'readonly';
}
