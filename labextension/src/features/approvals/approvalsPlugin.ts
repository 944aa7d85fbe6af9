import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { Announcer } from './announcer';
import { AgentBoxClient } from '../../api/client';
import { ApprovalModel } from '../../model/approvals';
import { Updater } from '../../model/updater';
import { IApprovalModel, IServersModel } from '../../tokens';

/** Provides the model of all requests, and keeps it up to date. */
export const approvalsPlugin: JupyterFrontEndPlugin<IApprovalModel> = {
  id: 'jupyter-agentbox:approvals',
  description: 'Provides the model of all approval requests.',
  autoStart: true,
  provides: IApprovalModel,
  requires: [IServersModel],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    servers: IServersModel,
    translator: ITranslator | null
  ): IApprovalModel => {
    const { events, serverSettings } = app.serviceManager;
    const trans = (translator ?? nullTranslator).load('jupyter-agentbox');
    const model = new ApprovalModel(new AgentBoxClient(serverSettings));
    new Updater(events, model, servers);
    new Announcer(model, trans);
    return model;
  }
};
