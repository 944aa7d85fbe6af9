import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import {
  JUPYTERLAB_NOTIFICATIONS,
  NOTIFICATION_SETTINGS,
  onSettings
} from '../../integrations/settings';
import { RENDER_TIME } from '../../integrations/standingNotification';
import { IApprovalModel, IApprovalPanel, IOrigins } from '../../internalTokens';
import { ArrivalSound, playTones } from './arrivalSound';

/** Plays a sound when a request arrives out of view, if the settings say so. */
export const soundPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:sound',
  description: 'Plays a sound for approval requests that are out of view.',
  autoStart: true,
  requires: [IApprovalModel, IOrigins, IApprovalPanel],
  optional: [ISettingRegistry],
  activate: (
    _: JupyterFrontEnd,
    model: IApprovalModel,
    origins: IOrigins,
    panel: IApprovalPanel,
    registry: ISettingRegistry | null
  ): void => {
    const sound = new ArrivalSound({
      model,
      origins,
      panel,
      renderTime: RENDER_TIME,
      play: playTones
    });
    onSettings(registry, NOTIFICATION_SETTINGS, settings => {
      sound.isEnabled = settings['sound'] === true;
    });
    onSettings(registry, JUPYTERLAB_NOTIFICATIONS, settings => {
      sound.isQuiet = settings['doNotDisturbMode'] === true;
    });
  }
};
