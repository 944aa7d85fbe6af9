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

/** How the languages of bundles write numbers and times. */
const locales = new WeakMap<TranslationBundle, string>();

/** How the language of a page writes numbers and times; `undefined` where that is the browser's own way. */
export function localeOf(trans: TranslationBundle): string | undefined {
  return locales.get(trans);
}

/** The browser's variant of a language, as British English, if it has one; else the language. */
function variantOf(code: string): string {
  const tag = code.replace('_', '-');
  const [base] = tag.toLowerCase().split('-');
  const isVariant = (one: string): boolean =>
    one.toLowerCase().split('-')[0] === base;
  return navigator.languages.find(isVariant) ?? tag;
}

/** The language of an application; that of the source if it has no translator. */
export function languageOf(optional: ITranslator | null): ILanguage {
  const translator = optional ?? nullTranslator;
  const trans = translator.load('jupyter-agentbox');
  locales.set(trans, variantOf(translator.languageCode));
  return { translator, trans };
}
