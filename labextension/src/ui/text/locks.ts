/**
 * What the site's administrator turned off, in words.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IFeatureLock } from '../../api/rules';
import { label } from './visibleText';

/** That a feature is off. */
export function offText(feature: string, trans: TranslationBundle): string {
  const texts: Record<string, string> = {
    grants: trans.__('Lasting answers that allow are off.'),
    edit: trans.__('Arguments cannot be edited.'),
    local_servers: trans.__('MCP servers of your own are off.'),
    agents: trans.__('Agents are off.'),
    models: trans.__('The model of agents cannot be chosen.')
  };
  return texts[feature] ?? label(feature, 80);
}

/** That a feature is off, and who turned it off. */
export function lockText(
  feature: string,
  { files }: IFeatureLock,
  trans: TranslationBundle
): string {
  const places = (files ?? []).map(file => label(file, 200)).join(', ');
  const text = trans.__(
    'Set by your administrator: %1',
    offText(feature, trans)
  );
  return places ? `${text} (${places})` : text;
}
