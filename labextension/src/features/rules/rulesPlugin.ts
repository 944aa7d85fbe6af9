import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { onPageReturn } from '../../integrations/pageReturn';
import { IAgentBoxClient, IRulesModel } from '../../internalTokens';
import { RulesModel } from '../../model/rules';

/** Provides the model of rules, and keeps it up to date. */
export const rulesPlugin: JupyterFrontEndPlugin<IRulesModel> = {
  id: 'jupyter-agentbox:rules',
  description: 'Provides the model of rules, and of what the site turned off.',
  autoStart: true,
  provides: IRulesModel,
  requires: [IAgentBoxClient],
  activate: (_: JupyterFrontEnd, client: IAgentBoxClient): IRulesModel => {
    const rules = new RulesModel(client);
    const refresh = (): void => void rules.refresh();
    onPageReturn(refresh);
    refresh();
    return rules;
  }
};
