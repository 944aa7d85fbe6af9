import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { IAgentBoxClient, IRulesModel } from '../../internalTokens';
import { RulesModel } from '../../model/rules';
import { RulesUpdater } from './updater';

/** Provides the model of rules, and keeps it up to date. */
export const rulesPlugin: JupyterFrontEndPlugin<IRulesModel> = {
  id: 'jupyter-agentbox:rules',
  description: 'Provides the model of rules, and of what the site turned off.',
  autoStart: true,
  provides: IRulesModel,
  requires: [IAgentBoxClient],
  activate: (_: JupyterFrontEnd, client: IAgentBoxClient): IRulesModel => {
    const rules = new RulesModel(client);
    new RulesUpdater(rules);
    return rules;
  }
};
