import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISanitizer, Sanitizer } from '@jupyterlab/apputils';
import { IConsoleTracker } from '@jupyterlab/console';
import { PageConfig } from '@jupyterlab/coreutils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { IKernelSpecManager, IServerSettings } from '@jupyterlab/services';
import type { KernelSpec, ServerConnection } from '@jupyterlab/services';
import { ITranslator } from '@jupyterlab/translation';

import { languageOf } from '../../ui/text/language';
import { IAgentBoxClient } from '../../internalTokens';
import { OutputsGuard } from './installation';
import { isSandboxed, KernelLevels } from './levels';
import { enforcePolicy } from './policy';
import { SandboxWatch } from './presence';

/** Prevents outputs of sandboxed kernels from running code in the page that a person did not allow. */
export const outputsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:outputs',
  description: 'Keeps outputs of sandboxed kernels from running code.',
  autoStart: true,
  requires: [
    IRenderMimeRegistry,
    IAgentBoxClient,
    IServerSettings,
    IKernelSpecManager
  ],
  optional: [INotebookTracker, IConsoleTracker, ISanitizer, ITranslator],
  activate: (
    { version }: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    client: IAgentBoxClient,
    serverSettings: ServerConnection.ISettings,
    kernelspecs: KernelSpec.IManager,
    notebooks: INotebookTracker | null,
    consoles: IConsoleTracker | null,
    sanitizer: ISanitizer | null,
    translator: ITranslator | null
  ): void => {
    const levels = new KernelLevels(client, kernelspecs, enforcePolicy);
    const guard = new OutputsGuard({
      version,
      rendermime,
      notebooks,
      consoles,
      levels,
      serverSettings,
      sanitizer: sanitizer ?? new Sanitizer(),
      language: languageOf(translator)
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
    new SandboxWatch(
      { notebooks, consoles, kernelspecs, levels, hasSpecs },
      () => {
        guard.install();
      }
    );
  }
};
