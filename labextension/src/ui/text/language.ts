/**
 * The language of the page.
 */
import { nullTranslator } from '@jupyterlab/translation';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';

/** What translates. */
export interface ILanguage {
  /** The strings of other packages. */
  translator: ITranslator;
  /** The strings of this one. */
  trans: TranslationBundle;
}

/** The language of an application; that of the source if it has no translator. */
export function languageOf(optional: ITranslator | null): ILanguage {
  const translator = optional ?? nullTranslator;
  return { translator, trans: translator.load('jupyter-agentbox') };
}
