import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IUserManager } from '@jupyterlab/services';
import type { User } from '@jupyterlab/services';
import { ITranslator } from '@jupyterlab/translation';

import { languageOf } from '../../ui/text/language';
import {
  IAgentBoxClient,
  IApprovalModel,
  IEventRouter
} from '../../internalTokens';
import { ApprovalModel } from '../../model/approvals';
import { Announcer } from './announcer';
import { ApprovalsUpdater } from './updater';

/** Provides the model of all requests, and keeps it up to date. */
export const approvalsPlugin: JupyterFrontEndPlugin<IApprovalModel> = {
  id: 'jupyter-agentbox:approvals',
  description: 'Provides the model of all approval requests.',
  autoStart: true,
  provides: IApprovalModel,
  requires: [IAgentBoxClient, IEventRouter, IUserManager],
  optional: [ITranslator],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    events: IEventRouter,
    user: User.IManager,
    translator: ITranslator | null
  ): IApprovalModel => {
    const { trans } = languageOf(translator);
    const model = new ApprovalModel(client);
    new ApprovalsUpdater(events, user, model);
    new Announcer(model, trans);
    return model;
  }
};
