import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStateDB } from '@jupyterlab/statedb';
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
  optional: [ILayoutRestorer, IStateDB, ITranslator],
  activate: (
    { restored, shell }: JupyterFrontEnd,
    restorer: ILayoutRestorer | null,
    state: IStateDB | null,
    translator: ITranslator | null
  ): IAgentBoxPanel => {
    const { trans } = languageOf(translator);
    const panel = new AgentBoxPanel({ shell, restored, trans });
    shell.add(panel, 'right', { rank: RANK });
    restorer?.add(panel, panel.id);
    if (state) {
      void rememberTab(panel, state);
    }
    return panel;
  }
};

/** JupyterLab leaves 501 to 899 to extensions; from 900 on there are panels that name no rank. */
const RANK = 850;

/** Show the tab of the last visit, and store in the workspace which one is open. */
async function rememberTab(
  panel: AgentBoxPanel,
  state: IStateDB
): Promise<void> {
  panel.tabChosen.connect((_, tab) => {
    void state.save(panel.id, { tab });
  });
  const saved = await state.fetch(panel.id);
  const tab = (saved as { tab?: unknown } | undefined)?.tab;
  if (typeof tab === 'string') {
    panel.restoreTab(tab);
  }
}
