import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget } from '@jupyterlab/apputils';
import { ITranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';

import { IAgentBoxPanel } from '../tokens';
import { OPEN_HISTORY, PALETTE_CATEGORY } from '../ui/commandIds';
import { NO_ARGUMENTS } from '../ui/commandArguments';
import { approvalIcon } from '../ui/icons';
import { showPage } from '../ui/showPage';
import { languageOf } from '../ui/text/language';
import { Guide } from './guide';
import type { IGuideLinks } from './guide';
import { SHOW_KEYS } from './keyHelp';
import { NEW_TOOL_DEMO } from './toolDemo';

/** The command that opens the guide. */
export const OPEN_GUIDE = 'jupyter-agentbox:open-guide';

/** Adds the guide, and the command that opens it. */
export const guidePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:guide',
  description: 'Adds a guide to AgentBox.',
  autoStart: true,
  requires: [IAgentBoxPanel],
  optional: [ICommandPalette, ITranslator],
  activate: (
    { commands, shell }: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const { trans } = languageOf(translator);
    const places = {
      demo: () => commands.execute(NEW_TOOL_DEMO),
      history: () => commands.execute(OPEN_HISTORY),
      keys: () => commands.execute(SHOW_KEYS),
      settings: () =>
        commands.execute('settingeditor:open', { query: 'AgentBox' })
    };
    const links: IGuideLinks = {
      showTab: id => {
        panel.showTab(id);
      },
      execute: name => void places[name]()
    };
    let page: MainAreaWidget | null = null;
    commands.addCommand(OPEN_GUIDE, {
      ...NO_ARGUMENTS,
      label: trans.__('AgentBox Guide'),
      caption: trans.__('Show what AgentBox does, and where things are'),
      icon: ({ isPalette }) => (isPalette ? undefined : approvalIcon),
      execute: () => {
        if (page === null || page.isDisposed) {
          const guide = React.createElement(Guide, { links, trans });
          page = new MainAreaWidget({ content: ReactWidget.create(guide) });
          page.id = 'jupyter-agentbox-guide';
          page.title.label = trans.__('AgentBox guide');
          page.title.icon = approvalIcon;
          page.title.closable = true;
          page.content.addClass('jp-AgentBox-guideContent');
        }
        showPage(shell, page);
      }
    });
    palette?.addItem({
      command: OPEN_GUIDE,
      category: PALETTE_CATEGORY,
      args: { isPalette: true }
    });
  }
};
