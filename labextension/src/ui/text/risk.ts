/**
 * How much a call can do, as far as anybody says.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IJsonObject } from '../../api/json';
import type { IApproval, IToolCall } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';

/** From the least to the most; `unsaid` is what the server does not say. */
export type Risk = 'readonly' | 'changes' | 'unsaid' | 'destructive';

/** What a card says of the risk of a call. */
export interface IRisk {
  risk: Risk;
  text: string;
  /** Whether this is a claim of the tool's server, which nothing checks. */
  isClaim: boolean;
}

/**
 * The risk that a tool's MCP annotations name. Of two that contradict each other the graver holds. A tool that may change
 * something and does not say what is not taken for harmless: where the hint is missing, MCP has it that it destroys.
 */
export function riskOf(annotations: IJsonObject): Risk {
  const destructive = annotations['destructiveHint'];
  if (destructive === true) {
    return 'destructive';
  }
  if (annotations['readOnlyHint'] === true) {
    return 'readonly';
  }
  return destructive === false ? 'changes' : 'unsaid';
}

/** Whether allowing it is not made to look like the obvious thing to do. */
export function isGrave(risk: Risk): boolean {
  return risk === 'destructive' || risk === 'unsaid';
}

/** The risk of a call, in words. */
export function describeRisk(
  { call, tool }: IApproval,
  trans: TranslationBundle
): IRisk {
  const own = ownWord(call, trans);
  if (own !== null) {
    return { risk: 'unsaid', text: own, isClaim: false };
  }
  return claimedRisk(tool.annotations, trans);
}

/** What the server of a tool says of its risk. */
export function claimedRisk(
  annotations: IJsonObject,
  trans: TranslationBundle
): IRisk {
  const risk = riskOf(annotations);
  const texts: Record<Risk, string> = {
    readonly: trans.__('read-only'),
    changes: trans.__('adds or changes data'),
    unsaid: trans.__('Server does not say what it changes'),
    destructive: trans.__('destructive')
  };
  return { risk, text: texts[risk], isClaim: risk !== 'unsaid' };
}

/** Whether a call is of a tool that is no server's, but this package's own. */
export function isOwn({ call }: IApproval, trans: TranslationBundle): boolean {
  return ownWord(call, trans) !== null;
}

/** What one of this package's own tools does; `null` for a server's. */
function ownWord(call: IToolCall, trans: TranslationBundle): string | null {
  switch (qualifiedName(call)) {
    case 'agentbox.register_mcp_server':
      return trans.__('adds a server');
    case 'notebook.set_approval_mode':
      return trans.__('lets an agent ask less');
    case 'notebook.run_code':
    case 'shell.shell':
    case 'shell.shell_magic':
      return trans.__('runs code');
    default:
      return null;
  }
}
