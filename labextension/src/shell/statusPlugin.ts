import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator } from '@jupyterlab/translation';
import type { ISignal } from '@lumino/signaling';

import { languageOf } from '../ui/text/language';
import {
  IApprovalModel,
  IApprovalPanel,
  IHubRequestsModel,
  IQuestionsModel
} from '../internalTokens';
import { ApprovalStatus } from './status';

/** Adds the status bar item, where there is a status bar. */
export const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:status',
  description:
    'Shows in the status bar how many approval requests and questions of servers wait.',
  autoStart: true,
  requires: [IApprovalModel, IApprovalPanel, IHubRequestsModel],
  optional: [IStatusBar, ITranslator, IQuestionsModel],
  activate: (
    _: JupyterFrontEnd,
    model: IApprovalModel,
    panel: IApprovalPanel,
    hub: IHubRequestsModel,
    statusBar: IStatusBar | null,
    translator: ITranslator | null,
    questions: IQuestionsModel | null
  ): void => {
    const { trans } = languageOf(translator);
    statusBar?.registerStatusItem('jupyter-agentbox:status', {
      item: new ApprovalStatus({ model, panel, hub, questions, trans }),
      align: 'left',
      rank: 5,
      // Without the server's part nothing can wait.
      isActive: () => model.connection !== 'absent',
      activeStateChanged: model.changed as unknown as ISignal<unknown, void>
    });
  }
};
