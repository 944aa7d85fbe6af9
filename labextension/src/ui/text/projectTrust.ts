/**
 * Requests that trust a server of the project's `.mcp.json`. Unlike a call that is allowed once, that lasts.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IApproval } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';

/** The file of a project whose server needs trust; empty for other requests. */
export function projectFile({ call }: IApproval): string {
  const file = call.arguments['file'];
  return qualifiedName(call) === 'agentbox.register_mcp_server' &&
    typeof file === 'string'
    ? file
    : '';
}

/** What the button that allows a request says. */
export function allowLabel(
  approval: IApproval,
  trans: TranslationBundle
): string {
  return projectFile(approval)
    ? trans.__('Trust and start')
    : trans.__('Allow once');
}
