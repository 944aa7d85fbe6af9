import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator } from '@jupyterlab/translation';

import { languageOf } from '../../ui/text/language';
import { Notifier } from './notifier';
import { onSettings } from '../../integrations/settings';
import { IApprovalModel, IApprovalPanel, IOrigins } from '../../internalTokens';

/** Notifies of requests whose cell is out of view. */
export const notificationsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:notifications',
  description: 'Notifies of approval requests that are out of view.',
  autoStart: true,
  requires: [IApprovalModel, IOrigins, IApprovalPanel],
  optional: [ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: IApprovalModel,
    origins: IOrigins,
    panel: IApprovalPanel,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ): void => {
    const { trans } = languageOf(translator);
    const { restored } = app;
    const notifier = new Notifier({ model, origins, panel, restored, trans });
    onSettings(registry, notificationsPlugin.id, ({ notifications }) => {
      notifier.isEnabled = notifications === true;
    });
  }
};
