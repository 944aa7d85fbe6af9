/**
 * A sanitizer whose results, while a gate is closed, load nothing from other addresses and do not look like the page.
 *
 * JupyterLab puts sanitized markup of outputs into the page in more places than the output, such as the table of
 * contents; a picture that is loaded there tells its server what its address says.
 */
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';

import type { IGate } from './gate';
import { examine } from './html';

const originals = new WeakMap<IRenderMime.ISanitizer, IRenderMime.ISanitizer>();

/** The sanitizer for what a gate guards. */
export function quietSanitizer(
  sanitizer: IRenderMime.ISanitizer,
  gate: IGate
): IRenderMime.ISanitizer {
  const original = originalOf(sanitizer);
  const quiet = Object.create(original) as IRenderMime.ISanitizer;
  quiet.sanitize = (dirty, options) => {
    const sanitize = (html: string): string => original.sanitize(html, options);
    const verdict = gate.isBound ? gate.verdict : gate.elsewhere;
    // Text has no markup to look at; outputs are text more often than not.
    const isFree =
      verdict === 'open' ||
      (verdict === 'unknown' && !gate.isBound) ||
      !dirty.includes('<');
    return isFree ? sanitize(dirty) : examine(dirty, sanitize).html;
  };
  originals.set(quiet, original);
  return quiet;
}

/** The original sanitizer of a guarded one. */
export function originalOf(
  sanitizer: IRenderMime.ISanitizer
): IRenderMime.ISanitizer {
  return originals.get(sanitizer) ?? sanitizer;
}
