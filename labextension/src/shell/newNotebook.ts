/**
 * Creates a notebook with the default kernel, for commands that write its first cells.
 */
import { NotebookPanel } from '@jupyterlab/notebook';
import type { KernelSpec } from '@jupyterlab/services';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';

/** Where a notebook is created, and with what. */
export interface INewNotebookOptions {
  registry: CommandRegistry;
  kernelspecs: Pick<KernelSpec.IManager, 'ready' | 'specs'>;
  /** The notebook's directory; by default, it is the file browser's. */
  cwd: ReadonlyPartialJSONValue | undefined;
}

/** Create a notebook, write its cells when it is shown, and return what the command `notebook:create-new` returns. */
export async function newNotebook(
  { registry, kernelspecs, cwd }: INewNotebookOptions,
  write: (panel: NotebookPanel) => void
): Promise<unknown> {
  await kernelspecs.ready;
  const panel: unknown = await registry.execute('notebook:create-new', {
    ...(cwd === undefined ? {} : { cwd }),
    kernelName: kernelspecs.specs?.default ?? ''
  });
  if (panel instanceof NotebookPanel) {
    await panel.revealed;
    write(panel);
  }
  return panel;
}
