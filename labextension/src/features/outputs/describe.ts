/**
 * Describes blocked outputs in words.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Finding } from './html';

/** The kind of an output whose type is blocked completely. */
export function describeType(
  mimeType: string,
  trans: TranslationBundle
): string {
  switch (mimeType) {
    case 'application/javascript':
    case 'text/javascript':
      return trans.__('JavaScript');
    case 'image/svg+xml':
      return trans.__('SVG image');
    default:
      return trans.__('Output of type %1', mimeType);
  }
}

/** The kind of markup, by the most powerful thing in it. */
export function describeFinding(
  finding: Finding,
  trans: TranslationBundle
): string {
  const texts: Record<Finding, string> = {
    script: trans.__('HTML with a script'),
    handler: trans.__('HTML with event handlers'),
    link: trans.__('HTML with links that run code'),
    command: trans.__('HTML with JupyterLab commands'),
    frame: trans.__('HTML with a frame'),
    object: trans.__('HTML with an embedded object'),
    style: trans.__('HTML with style sheets'),
    remote: trans.__('External content'),
    other: trans.__('HTML with unsupported elements')
  };
  return texts[finding];
}
