import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { PanelOpener } from './panelOpener';
import { onSettings } from './settings';
import { reviewerNames } from '../ui/text/reviewers';
import {
  IApprovalModel,
  IApprovalPanel,
  IHistoryModel,
  IOrigins,
  IServersModel
} from '../tokens';
import { ApprovalPanel } from './panel';

/** Adds the side panel. */
export const panelPlugin: JupyterFrontEndPlugin<IApprovalPanel> = {
  id: 'jupyter-agentbox:panel',
  description: 'Adds the side panel of approval requests.',
  autoStart: true,
  provides: IApprovalPanel,
  requires: [IApprovalModel, IHistoryModel, IServersModel, IOrigins],
  optional: [ILayoutRestorer, ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: IApprovalModel,
    history: IHistoryModel,
    servers: IServersModel,
    origins: IOrigins,
    restorer: ILayoutRestorer | null,
    registry: ISettingRegistry | null,
    optionalTranslator: ITranslator | null
  ): IApprovalPanel => {
    const translator = optionalTranslator ?? nullTranslator;
    const trans = translator.load('jupyter-agentbox');
    const nameOf = reviewerNames(app.serviceManager.user, trans);
    const context = { model, origins, nameOf, translator, trans };
    const panel = new ApprovalPanel({ context, history, servers });
    app.shell.add(panel, 'right', { rank: 900 });
    restorer?.add(panel, panel.id);
    const opener = new PanelOpener(app.shell, panel, model);
    onSettings(registry, settings => {
      history.pageSize = settings.historySize;
      opener.isAutomatic = settings.openPanelAutomatically;
    });
    return opener;
  }
};
