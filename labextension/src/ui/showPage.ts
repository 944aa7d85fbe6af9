/**
 * Shows a page in JupyterLab's main area, or where a Jupyter application has room for one.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { Widget } from '@lumino/widgets';

/** Go to a page, which is added if it is not there yet. */
export function showPage(shell: JupyterFrontEnd.IShell, page: Widget): void {
  if (!page.isAttached) {
    shell.add(page, 'main');
  }
  if (!page.isAttached) {
    shell.add(page, 'right'); // Jupyter Notebook has room for one document only
  }
  shell.activateById(page.id);
}
