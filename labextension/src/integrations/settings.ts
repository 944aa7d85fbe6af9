/**
 * The settings of a plugin.
 */
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

/** The plugin with the settings for notifications. */
export const NOTIFICATION_SETTINGS = 'jupyter-agentbox:notifications';

/** The plugin with JupyterLab's *Do Not Disturb* setting. */
export const JUPYTERLAB_NOTIFICATIONS =
  '@jupyterlab/apputils-extension:notification';

/**
 * Call back with the settings of a plugin, now and whenever they change, until the result is disposed. Their types and
 * defaults are in the schema.
 */
export function onSettings(
  registry: ISettingRegistry | null,
  plugin: string,
  callback: (settings: ReadonlyPartialJSONObject) => void
): IDisposable {
  const receiver = {};
  const watching = new DisposableDelegate(() => {
    Signal.clearData(receiver);
  });
  const watch = (settings: ISettingRegistry.ISettings): void => {
    const tell = (): void => {
      callback(settings.composite);
    };
    if (!watching.isDisposed) {
      settings.changed.connect(tell, receiver);
      tell();
    }
  };
  registry
    ?.load(plugin)
    .then(watch)
    .catch((error: unknown) => {
      console.warn(`The settings of ${plugin} cannot be read.`, error);
    });
  return watching;
}
