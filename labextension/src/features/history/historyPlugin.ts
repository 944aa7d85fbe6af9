import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { onSettings } from '../../integrations/settings';
import {
  IAgentBoxClient,
  IApprovalModel,
  IHistoryModel
} from '../../internalTokens';
import { HistoryModel } from '../../model/history';

/** Provides the model of the final requests. */
export const historyPlugin: JupyterFrontEndPlugin<IHistoryModel> = {
  id: 'jupyter-agentbox:history',
  description: 'Provides the model of past approval requests.',
  autoStart: true,
  provides: IHistoryModel,
  requires: [IAgentBoxClient, IApprovalModel],
  optional: [ISettingRegistry],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    approvals: IApprovalModel,
    registry: ISettingRegistry | null
  ): IHistoryModel => {
    const history = new HistoryModel(client, approvals);
    onSettings(registry, historyPlugin.id, ({ historySize }) => {
      history.pageSize = Number(historySize);
    });
    return history;
  }
};
