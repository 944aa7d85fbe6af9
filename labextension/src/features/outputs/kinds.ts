/**
 * How an output of each MIME type is treated while the gate is closed. A type that is not listed is treated as code.
 */

/**
 * `shown`: its renderer makes text or a picture of it. `sanitized`: markup, of which the sanitizer leaves what runs
 * nothing. `picture`: a drawing that is shown as a picture, in which nothing runs. `widget`: the widget manager asks
 * for each part. `blocked`: not shown.
 */
export type Treatment =
  'shown' | 'sanitized' | 'picture' | 'widget' | 'blocked';

/** A view of an ipywidget. */
export const WIDGET_MIME_TYPE = 'application/vnd.jupyter.widget-view+json';

const TREATMENTS: ReadonlyMap<string, Treatment> = new Map([
  ['text/plain', 'shown'],
  ['text/latex', 'shown'],
  ['application/json', 'shown'],
  ['application/vnd.jupyter.stdout', 'shown'],
  ['application/vnd.jupyter.stderr', 'shown'],
  ['application/vnd.jupyter.error', 'shown'],
  ['image/png', 'shown'],
  ['image/jpeg', 'shown'],
  ['image/gif', 'shown'],
  ['image/webp', 'shown'],
  ['image/bmp', 'shown'],
  ['text/html', 'sanitized'],
  ['text/markdown', 'sanitized'],
  ['image/svg+xml', 'picture'],
  [WIDGET_MIME_TYPE, 'widget']
]);

export function treatmentOf(mimeType: string): Treatment {
  return TREATMENTS.get(mimeType) ?? 'blocked';
}
