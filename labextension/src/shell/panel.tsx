/**
 * The side panel.
 */
import { ReactWidget } from '@jupyterlab/ui-components';
import { MessageLoop } from '@lumino/messaging';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import React from 'react';

import { HistoryList } from '../features/history/HistoryList';
import { PendingList } from '../features/approvals/PendingList';
import { CardProvider } from '../ui/context';
import type { ICardContext } from '../ui/context';
import { ServerList } from '../features/servers/ServerList';
import { approvalIcon } from '../ui/icons';
import type { IHistoryModel, IServersModel } from '../tokens';
import { Forms, OpenForms } from '../ui/card/forms';

/** What the panel shows. */
export interface IPanelOptions {
  context: ICardContext;
  history: IHistoryModel;
  servers: IServersModel;
}

/** What waits, what was, and the MCP servers. */
export class ApprovalPanel extends ReactWidget {
  constructor(private readonly _options: IPanelOptions) {
    super();
    this.id = 'jupyter-agentbox-panel';
    this.addClass('jp-AgentBox-panel');
    this.title.icon = approvalIcon;
    this.node.tabIndex = -1;
    this._updateTitle();
    this._options.context.model.changed.connect(this._updateTitle, this);
  }

  override dispose(): void {
    this._options.context.model.changed.disconnect(this._updateTitle, this);
    super.dispose();
  }

  /** Move the focus to the next, or the previous, request that waits; to the panel if none does. */
  async moveFocus(step: 1 | -1): Promise<void> {
    await this._rendered();
    const cards = this._cards();
    const current = cards.findIndex(card =>
      card.contains(document.activeElement)
    );
    const start = current < 0 && step < 0 ? 0 : current;
    this._focus(cards[(start + step + cards.length) % cards.length]);
  }

  /** Move the focus to a request that waits; to the panel if it does not. */
  async focusRequest(id: string): Promise<void> {
    this._wanted = id;
    await this._rendered();
    this._focus(this._cards().find(card => card.dataset['requestId'] === id));
  }

  /** Move the focus into the panel, so that Tab goes on from there. */
  async focusPanel(): Promise<void> {
    await this._rendered();
    if (!this.node.contains(document.activeElement)) {
      this.node.focus({ preventScroll: true });
    }
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    void this._options.servers.refresh();
    void this._options.history.load();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    void this._options.servers.refresh();
    void this._options.history.load();
  }

  protected override render(): JSX.Element {
    const { context, history, servers } = this._options;
    return (
      <OpenForms.Provider value={this._forms}>
        <CardProvider value={context}>
          <PendingList wanted={this._wanted} />
          <HistoryList history={history} />
          <ServerList servers={servers} />
        </CardProvider>
      </OpenForms.Provider>
    );
  }

  /**
   * Wait until what arrived a moment ago is on screen. By then the palette, if it was what called, has given the focus
   * back to where it was, and will not do so again.
   */
  private async _rendered(): Promise<void> {
    MessageLoop.sendMessage(this, Widget.Msg.UpdateRequest);
    await this.renderPromise;
  }

  /** The cards of the requests that wait. */
  private _cards(): HTMLElement[] {
    return [
      ...this.node.querySelectorAll<HTMLElement>(
        '.jp-AgentBox-pending .jp-AgentBox-card[data-request-id]'
      )
    ];
  }

  private _focus(card: HTMLElement | undefined): void {
    (card ?? this.node).focus();
    card?.scrollIntoView({ block: 'nearest' });
  }

  private _updateTitle(): void {
    const { model, trans } = this._options.context;
    const count = model.pending.length;
    this.title.caption =
      count > 0
        ? trans.__('Approval requests (%1 waiting)', count)
        : trans.__('Approval requests');
    const badge = count > 99 ? '99+' : String(count);
    // The shell has its own data here.
    const dataset = { ...this.title.dataset };
    delete dataset['agentbox-count'];
    this.title.dataset =
      count > 0 ? { ...dataset, 'agentbox-count': badge } : dataset;
  }

  private readonly _forms = new Forms();
  /** A request to show even if many older ones wait. */
  private _wanted: string | null = null;
}
