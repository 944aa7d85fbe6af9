import { nullTranslator } from '@jupyterlab/translation';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';

import { languageOf, localeOf } from '../../../src/ui/text/language';

/** A translator to a language, whose strings are those of the source. */
function translatorTo(languageCode: string): ITranslator {
  const source = nullTranslator.load('');
  const load = (): TranslationBundle => Object.create(source);
  return { languageCode, load };
}

test.each([
  ['de_DE', ['en-GB', 'en'], '1.234'],
  ['en', ['de-DE', 'de'], '1,234'],
  ['es', ['fr', 'es-MX'], '1,234']
])(
  'a page in %s writes numbers so in a browser that prefers %j',
  (code, preferred, written) => {
    const languages = jest.spyOn(navigator, 'languages', 'get');
    languages.mockReturnValue(preferred);
    const { trans } = languageOf(translatorTo(code));
    languages.mockRestore();
    expect((1234).toLocaleString(localeOf(trans))).toBe(written);
  }
);
