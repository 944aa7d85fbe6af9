import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IUserManager } from '@jupyterlab/services';
import type { User } from '@jupyterlab/services';

import { IAgentBoxClient, IRulesModel } from '../../internalTokens';
import { RulesModel } from '../../model/rules';
import { RulesUpdater } from './updater';

/** Provides the model of rules, and keeps it up to date. */
export const rulesPlugin: JupyterFrontEndPlugin<IRulesModel> = {
  id: 'jupyter-agentbox:rules',
  description: 'Provides the model of rules, and of what the site turned off.',
  autoStart: true,
  provides: IRulesModel,
  requires: [IAgentBoxClient, IUserManager],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    user: User.IManager
  ): IRulesModel => {
    const rules = new RulesModel(client);
    new RulesUpdater(rules, user, client);
    return rules;
  }
};
