import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  MainAreaWidget,
  WidgetTracker
} from '@jupyterlab/apputils';
import { IUserManager } from '@jupyterlab/services';
import type { User } from '@jupyterlab/services';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React from 'react';

import { IAgentBoxClient, ICardContext } from '../../internalTokens';
import { AuditFollower } from '../../model/auditFollower';
import { AuditLogModel } from '../../model/auditLog';
import { OPEN_HISTORY, PALETTE_CATEGORY } from '../../ui/commandIds';
import { CardProvider } from '../../ui/context';
import { FocusAnchor } from '../../ui/focusAnchor';
import { NO_ARGUMENTS } from '../../ui/commandArguments';
import { approvalIcon } from '../../ui/icons';
import { showPage } from '../../ui/showPage';
import { searchedReviewer } from '../../ui/text/reviewers';
import { HistoryPage } from './HistoryPage';

/** The page is one, and the workspace knows it by this name. */
const PAGE_ID = 'jupyter-agentbox-history';

/** Adds the page of all calls, and the command that opens it. */
export const historyPagePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:history-page',
  description: 'Adds a page with the history of all tool calls.',
  autoStart: true,
  requires: [IAgentBoxClient, ICardContext],
  optional: [ICommandPalette, IUserManager, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    client: IAgentBoxClient,
    context: ICardContext,
    palette: ICommandPalette | null,
    user: User.IManager | null,
    restorer: ILayoutRestorer | null
  ): void => {
    const { trans } = context;
    const pages = new WidgetTracker<MainAreaWidget>({ namespace: PAGE_ID });
    let page: MainAreaWidget | null = null;
    app.commands.addCommand(OPEN_HISTORY, {
      ...NO_ARGUMENTS,
      label: trans.__('AgentBox History'),
      caption: trans.__('Show which tool calls ran, and who allowed them'),
      icon: approvalIcon,
      execute: () => {
        if (page === null || page.isDisposed) {
          page = makePage(client, context, user);
          void pages.add(page);
        }
        showPage(app.shell, page);
      }
    });
    // A page that was open is open again after the window was reloaded.
    void restorer?.restore(pages, {
      command: OPEN_HISTORY,
      name: () => PAGE_ID
    });
    palette?.addItem({
      command: OPEN_HISTORY,
      category: PALETTE_CATEGORY
    });
  }
};

function makePage(
  client: IAgentBoxClient,
  context: ICardContext,
  user: User.IManager | null
): MainAreaWidget {
  const log = new AuditLogModel(
    client,
    () => new Date(),
    name => searchedReviewer(name, user, context.trans)
  );
  const content = new HistoryContent(log, context);
  const page = new MainAreaWidget({ content });
  page.id = PAGE_ID;
  page.title.label = context.trans.__('AgentBox history');
  page.title.icon = approvalIcon;
  page.title.closable = true;
  void log.load();
  return page;
}

/** The page's content, which follows what happens while it is shown. */
class HistoryContent extends ReactWidget {
  constructor(
    private readonly _log: AuditLogModel,
    private readonly _context: ICardContext
  ) {
    super();
    this.addClass('jp-AgentBox-historyContent');
    this._follower = new AuditFollower(_log, _context.model);
  }

  override dispose(): void {
    this._anchor.dispose();
    this._follower.dispose();
    super.dispose();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._follower.isActive = this.isVisible;
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._follower.isActive = true;
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this._follower.isActive = false;
  }

  protected override render(): JSX.Element {
    return (
      <CardProvider value={this._context}>
        <HistoryPage
          log={this._log}
          onRendered={node => {
            this._anchor.observe(node);
          }}
        />
      </CardProvider>
    );
  }

  private readonly _anchor = new FocusAnchor(this.node);
  private readonly _follower: AuditFollower;
}
