/**
 * The settings, typed.
 */
import type { ISettingRegistry } from '@jupyterlab/settingregistry';

/** The plugin that the settings belong to; `schema/panel.json` describes them. */
const SETTINGS_ID = 'jupyter-agentbox:panel';

/** What a user can set. */
export interface ISettings {
  notifications: boolean;
  openPanelAutomatically: boolean;
  historySize: number;
}

/** Call back with the settings, now and whenever they change. */
export function onSettings(
  registry: ISettingRegistry | null,
  callback: (settings: ISettings) => void
): void {
  registry
    ?.load(SETTINGS_ID)
    .then(settings => {
      callback(read(settings));
      settings.changed.connect(() => {
        callback(read(settings));
      });
    })
    .catch((error: unknown) => {
      console.warn('The settings of jupyter-agentbox cannot be read.', error);
    });
}

function read(settings: ISettingRegistry.ISettings): ISettings {
  const { notifications, openPanelAutomatically, historySize } =
    settings.composite;
  return {
    notifications: notifications !== false,
    openPanelAutomatically: openPanelAutomatically === true,
    historySize: typeof historySize === 'number' ? historySize : 50
  };
}
