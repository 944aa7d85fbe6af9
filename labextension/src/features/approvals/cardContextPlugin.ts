import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { IConsoleTracker } from '@jupyterlab/console';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import { IUserManager } from '@jupyterlab/services';
import type { User } from '@jupyterlab/services';
import { ITranslator } from '@jupyterlab/translation';

import {
  IAgentBoxClient,
  IApprovalModel,
  ICardContext,
  IOrigins,
  IQuestionsModel,
  IRulesModel
} from '../../internalTokens';
import { languageOf } from '../../ui/text/language';
import { reviewerNames } from '../../ui/text/reviewers';
import { MAKE_RULE } from '../../ui/commandIds';
import { showPage } from '../../ui/showPage';
import { FocusRestorer } from './focusRestorer';
import { Follower } from './follower';
import { RunFollower } from './runFollower';
import { tellOfNoCard } from './noCard';
import { makeValuePage } from './valuePage';

/** Provides the context that every view of requests needs. */
export const cardContextPlugin: JupyterFrontEndPlugin<ICardContext> = {
  id: 'jupyter-agentbox:card-context',
  description: 'Provides what every view of approval requests needs.',
  autoStart: true,
  provides: ICardContext,
  requires: [IApprovalModel, IOrigins, IUserManager, IAgentBoxClient],
  optional: [
    IQuestionsModel,
    IEditorServices,
    ITranslator,
    IRulesModel,
    INotebookTracker,
    IConsoleTracker
  ],
  activate: (
    app: JupyterFrontEnd,
    model: IApprovalModel,
    origins: IOrigins,
    user: User.IManager,
    client: IAgentBoxClient,
    questions: IQuestionsModel | null,
    services: IEditorServices | null,
    translator: ITranslator | null,
    locks: IRulesModel | null,
    notebooks: INotebookTracker | null,
    consoles: IConsoleTracker | null
  ): ICardContext => {
    const language = languageOf(translator);
    const nameOf = reviewerNames(user, language.trans);
    const editors = services?.factoryService ?? null;
    const makeRule: ICardContext['makeRule'] = (requestId, effect) => {
      void app.commands.execute(MAKE_RULE, { requestId, effect });
    };
    const restorer = new FocusRestorer(notebooks, consoles);
    const follower = new Follower();
    const runFollower = new RunFollower();
    NotebookActions.executionScheduled.connect((_, { cell }) => {
      runFollower.follow(cell.node);
    });
    const context: ICardContext = {
      ...language,
      model,
      origins,
      nameOf,
      questions,
      locks,
      editors,
      makeRule,
      restoreFocus: from => {
        restorer.leave(from);
        follower.follow(from);
      },
      proposeUpdate: client.proposeUpdate.bind(client),
      noCard: approval => {
        tellOfNoCard(approval, language.trans);
      },
      openValue: value => {
        showPage(app.shell, makeValuePage(value, context));
      }
    };
    return context;
  }
};
