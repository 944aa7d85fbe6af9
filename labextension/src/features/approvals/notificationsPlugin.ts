import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator } from '@jupyterlab/translation';

import type { IApproval } from '../../api/protocol';
import { languageOf } from '../../ui/text/language';
import { DesktopNotifier } from './desktopNotifier';
import { HubRequestNotifier } from './hubRequestNotifier';
import { Notifier } from './notifier';
import { QuestionNotifier } from './questionNotifier';
import { TitleCount } from './titleCount';
import {
  JUPYTERLAB_NOTIFICATIONS,
  NOTIFICATION_SETTINGS,
  onSettings
} from '../../integrations/settings';
import {
  IApprovalModel,
  IApprovalPanel,
  IHubRequestsModel,
  IOrigins,
  IQuestionsModel
} from '../../internalTokens';

/** Notifies of requests whose cell is out of view. */
export const notificationsPlugin: JupyterFrontEndPlugin<void> = {
  id: NOTIFICATION_SETTINGS,
  description: 'Notifies of approval requests that are out of view.',
  autoStart: true,
  requires: [IApprovalModel, IOrigins, IApprovalPanel, IHubRequestsModel],
  optional: [ISettingRegistry, ITranslator, IQuestionsModel],
  activate: (
    app: JupyterFrontEnd,
    model: IApprovalModel,
    origins: IOrigins,
    panel: IApprovalPanel,
    hub: IHubRequestsModel,
    registry: ISettingRegistry | null,
    translator: ITranslator | null,
    questions: IQuestionsModel | null
  ): void => {
    const { trans } = languageOf(translator);
    const { restored } = app;
    const notifier = new Notifier({ model, origins, panel, restored, trans });
    const show = ({ id }: IApproval): void => {
      panel.focusRequest(id);
    };
    const desktop = new DesktopNotifier({
      model,
      origins,
      show,
      restored,
      trans
    });
    const asked =
      questions &&
      new QuestionNotifier({
        questions,
        model,
        origins,
        panel,
        desktop,
        restored,
        trans
      });
    const atHub = new HubRequestNotifier({
      hub,
      panel,
      desktop,
      restored,
      trans
    });
    new TitleCount({ model, hub, questions });
    onSettings(registry, NOTIFICATION_SETTINGS, settings => {
      const isEnabled = settings['notifications'] === true;
      notifier.isEnabled = isEnabled;
      atHub.isEnabled = isEnabled;
      if (asked) {
        asked.isEnabled = isEnabled;
      }
      desktop.isEnabled = settings['desktopNotifications'] === true;
    });
    onSettings(registry, JUPYTERLAB_NOTIFICATIONS, settings => {
      desktop.isQuiet = settings['doNotDisturbMode'] === true;
    });
  }
};
