/**
 * Notices the first sandboxed kernel in a page of a server that had none when the page was loaded.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { IConsoleTracker } from '@jupyterlab/console';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { KernelSpec } from '@jupyterlab/services';

import type { KernelLevels } from './levels';

/** Where a sandboxed kernel could be seen. */
export interface ISandboxSigns {
  notebooks: Pick<INotebookTracker, 'forEach' | 'widgetAdded'> | null;
  consoles: Pick<IConsoleTracker, 'forEach' | 'widgetAdded'> | null;
  kernelspecs: Pick<KernelSpec.IManager, 'specsChanged'>;
  levels: Pick<KernelLevels, 'ask'>;
  /** Whether a kernelspec is of a sandboxed kernel. */
  hasSpecs: () => boolean;
}

/** Call back once: when such a kernelspec was added, or a kernel is one. */
export function awaitSandbox(signs: ISandboxSigns, onFound: () => void): void {
  let isFound = false;
  const found = (): void => {
    if (!isFound) {
      isFound = true;
      onFound();
    }
  };
  const ask = async (context: ISessionContext): Promise<void> => {
    const kernel = context.session?.kernel;
    if (
      kernel &&
      !isFound &&
      (await signs.levels.ask(kernel)) === 'sandboxed'
    ) {
      found();
    }
  };
  const watch = (context: ISessionContext): void => {
    context.kernelChanged.connect(() => {
      void ask(context);
    });
    void ask(context);
  };

  signs.kernelspecs.specsChanged.connect(() => {
    if (signs.hasSpecs()) {
      found();
    }
  });
  for (const tracker of [signs.notebooks, signs.consoles]) {
    tracker?.forEach(({ sessionContext }) => {
      watch(sessionContext);
    });
    tracker?.widgetAdded.connect((_: unknown, { sessionContext }) => {
      watch(sessionContext);
    });
  }
}
