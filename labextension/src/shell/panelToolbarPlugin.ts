import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator } from '@jupyterlab/translation';
import {
  CommandToolbarButton,
  historyIcon,
  infoIcon,
  settingsIcon
} from '@jupyterlab/ui-components';
import type { LabIcon } from '@jupyterlab/ui-components';
import type { ReadonlyJSONObject } from '@lumino/coreutils';

import { IAgentBoxPanel } from '../tokens';
import { OPEN_HISTORY } from '../ui/commandIds';
import { languageOf } from '../ui/text/language';
import { OPEN_GUIDE } from './guidePlugin';

/** JupyterLab's settings editor. */
const OPEN_SETTINGS = 'settingeditor:open';

/** Adds the buttons to the toolbar of the side panel that lead to other pages. */
export const panelToolbarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:panel-toolbar',
  description: 'Adds buttons to the toolbar of the side panel.',
  autoStart: true,
  requires: [IAgentBoxPanel],
  optional: [ITranslator],
  activate: (
    { commands, restored }: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    translator: ITranslator | null
  ): void => {
    const { trans } = languageOf(translator);
    const add = (
      command: string,
      icon: LabIcon,
      caption: string,
      args: ReadonlyJSONObject = {}
    ): void => {
      // An application may lack a page; by now every plugin has added its commands.
      if (commands.hasCommand(command)) {
        const button = new CommandToolbarButton({
          commands,
          id: command,
          args,
          icon,
          label: '',
          caption
        });
        panel.addToolbarItem(command, button, 'end');
      }
    };
    void restored.then(() => {
      add(OPEN_HISTORY, historyIcon, trans.__('Show all history'));
      add(OPEN_SETTINGS, settingsIcon, trans.__('AgentBox settings'), {
        query: 'AgentBox'
      });
      add(OPEN_GUIDE, infoIcon, trans.__('AgentBox guide'));
    });
  }
};
