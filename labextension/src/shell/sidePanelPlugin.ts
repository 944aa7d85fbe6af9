import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator } from '@jupyterlab/translation';

import { IAgentBoxPanel } from '../tokens';
import { languageOf } from '../ui/text/language';
import { AgentBoxPanel } from './sidePanel';

/** Adds the side panel, to which other plugins add their sections. */
export const sidePanelPlugin: JupyterFrontEndPlugin<IAgentBoxPanel> = {
  id: 'jupyter-agentbox:side-panel',
  description: 'Adds the side panel.',
  autoStart: true,
  provides: IAgentBoxPanel,
  optional: [ILayoutRestorer, ITranslator],
  activate: (
    { restored, shell }: JupyterFrontEnd,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null
  ): IAgentBoxPanel => {
    const { trans } = languageOf(translator);
    const panel = new AgentBoxPanel({ shell, restored, trans });
    shell.add(panel, 'right', { rank: 900 });
    restorer?.add(panel, panel.id);
    return panel;
  }
};
