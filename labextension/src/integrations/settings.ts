/**
 * The settings of a plugin.
 */
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

/** Call back with the settings of a plugin, now and whenever they change. The schema has their types and defaults. */
export function onSettings(
  registry: ISettingRegistry | null,
  plugin: string,
  callback: (settings: ReadonlyPartialJSONObject) => void
): void {
  registry
    ?.load(plugin)
    .then(settings => {
      const tell = (): void => {
        callback(settings.composite);
      };
      settings.changed.connect(tell);
      tell();
    })
    .catch((error: unknown) => {
      console.warn(`The settings of ${plugin} cannot be read.`, error);
    });
}
