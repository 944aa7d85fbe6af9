import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISanitizer, Sanitizer } from '@jupyterlab/apputils';
import { IConsoleTracker } from '@jupyterlab/console';
import { PageConfig } from '@jupyterlab/coreutils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { AgentBoxClient } from '../../api/client';
import { OutputsGuard } from './installation';
import { isSandboxed, KernelLevels } from './levels';
import { enforcePolicy } from './policy';
import { awaitSandbox } from './presence';

/** Lets outputs of sandboxed kernels run no code in the page that a person did not allow. */
export const outputsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:outputs',
  description: 'Keeps outputs of sandboxed kernels from running code.',
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [INotebookTracker, IConsoleTracker, ISanitizer, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    notebooks: INotebookTracker | null,
    consoles: IConsoleTracker | null,
    sanitizer: ISanitizer | null,
    translator: ITranslator | null
  ): void => {
    const { kernelspecs, serverSettings } = app.serviceManager;
    const client = new AgentBoxClient(serverSettings);
    const levels = new KernelLevels(client, kernelspecs, enforcePolicy);
    const guard = new OutputsGuard({
      rendermime,
      notebooks,
      consoles,
      levels,
      serverSettings,
      sanitizer: sanitizer ?? new Sanitizer(),
      trans: (translator ?? nullTranslator).load('jupyter-agentbox')
    });

    // Only a server that says that it has no sandboxed kernels is believed; one that says nothing may have some.
    if (PageConfig.getOption('agentboxSandboxedKernels') !== 'false') {
      guard.install();
      return;
    }
    const hasSpecs = (): boolean =>
      Object.values(kernelspecs.specs?.kernelspecs ?? {}).some(
        spec => spec && isSandboxed(spec)
      );
    awaitSandbox({ notebooks, consoles, kernelspecs, levels, hasSpecs }, () => {
      guard.install();
    });
  }
};
