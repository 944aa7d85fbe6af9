import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISanitizer, Sanitizer } from '@jupyterlab/apputils';
import { IConsoleTracker } from '@jupyterlab/console';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { IKernelSpecManager, IServerSettings } from '@jupyterlab/services';
import type { KernelSpec, ServerConnection } from '@jupyterlab/services';
import { ITranslator } from '@jupyterlab/translation';

import { languageOf } from '../../ui/text/language';
import { IAgentBoxClient } from '../../internalTokens';
import { KernelLevels } from './levels';
import { guardOutputs } from './loading';
import { enforcePolicy } from './policy';

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
  activate: async (
    { version }: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    client: IAgentBoxClient,
    serverSettings: ServerConnection.ISettings,
    kernelspecs: KernelSpec.IManager,
    notebooks: INotebookTracker | null,
    consoles: IConsoleTracker | null,
    sanitizer: ISanitizer | null,
    translator: ITranslator | null
  ): Promise<void> => {
    // Until this returns, the application opens nothing.
    await guardOutputs(
      {
        version,
        rendermime,
        notebooks,
        consoles,
        levels: new KernelLevels(client, kernelspecs, enforcePolicy),
        serverSettings,
        sanitizer: sanitizer ?? new Sanitizer(),
        language: languageOf(translator)
      },
      kernelspecs
    );
  }
};
