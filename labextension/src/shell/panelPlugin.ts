import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { PanelOpener } from './panelOpener';
import { onSettings } from '../integrations/settings';
import { ICardContext } from '../internalTokens';
import { IApprovalPanel, IHistoryModel, IServersModel } from '../tokens';
import { ApprovalPanel } from './panel';

/** Adds the side panel. */
export const panelPlugin: JupyterFrontEndPlugin<IApprovalPanel> = {
  id: 'jupyter-agentbox:panel',
  description: 'Adds the side panel of approval requests.',
  autoStart: true,
  provides: IApprovalPanel,
  requires: [ICardContext, IHistoryModel, IServersModel],
  optional: [ILayoutRestorer, ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    context: ICardContext,
    history: IHistoryModel,
    servers: IServersModel,
    restorer: ILayoutRestorer | null,
    registry: ISettingRegistry | null
  ): IApprovalPanel => {
    const panel = new ApprovalPanel({ context, history, servers });
    app.shell.add(panel, 'right', { rank: 900 });
    restorer?.add(panel, panel.id);
    const opener = new PanelOpener(app.shell, panel, context.model);
    onSettings(registry, panelPlugin.id, ({ openPanelAutomatically }) => {
      opener.isAutomatic = openPanelAutomatically === true;
    });
    return opener;
  }
};
