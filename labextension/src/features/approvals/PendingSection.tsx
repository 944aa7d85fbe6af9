/**
 * The section of the side panel with the requests that wait.
 */
import { ReactWidget } from '@jupyterlab/ui-components';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import React from 'react';

import { Forms, OpenForms } from '../../ui/card/forms';
import { CardProvider } from '../../ui/context';
import type { ICardContext } from '../../ui/context';
import { PendingList } from './PendingList';

/** Milliseconds after which the list is on screen also where the page is never idle. */
const RENDERED_WITHIN = 1000;

/** Shows the list, and finds the cards in it. */
export class PendingSection extends ReactWidget {
  constructor(private readonly _context: ICardContext) {
    super();
  }

  /** The card after the one with the focus, or before it. */
  async findNext(step: 1 | -1): Promise<HTMLElement | undefined> {
    await this.rendered();
    const cards = this._cards();
    const current = cards.findIndex(card =>
      card.contains(document.activeElement)
    );
    const start = current < 0 && step < 0 ? 0 : current;
    return cards[(start + step + cards.length) % cards.length];
  }

  /** The card of a request, which is shown even if many older ones wait. */
  async find(id: string): Promise<HTMLElement | undefined> {
    this._wanted = id;
    await this.rendered();
    return (
      this._cards().find(card => card.dataset['requestId'] === id) ??
      this.node.querySelector<HTMLElement>(`[data-row-id="${id}"]`) ??
      undefined
    );
  }

  /**
   * Wait until what arrived a moment ago is on screen. By then the palette, if it was what called, has given the focus
   * back to where it was, and will not do so again.
   */
  async rendered(): Promise<void> {
    MessageLoop.sendMessage(this, Widget.Msg.UpdateRequest);
    // The promise is kept when the page is idle, which a busy one is not for a long time.
    await Promise.race([this.renderPromise, delay(RENDERED_WITHIN)]);
  }

  protected override render(): JSX.Element {
    return (
      <OpenForms.Provider value={this._forms}>
        <CardProvider value={this._context}>
          <PendingList wanted={this._wanted} />
        </CardProvider>
      </OpenForms.Provider>
    );
  }

  private _cards(): HTMLElement[] {
    return [
      ...this.node.querySelectorAll<HTMLElement>(
        '.jp-AgentBox-pending .jp-AgentBox-card[data-request-id], .jp-AgentBox-pending .jp-AgentBox-batch'
      )
    ];
  }

  private readonly _forms = new Forms();
  private _wanted: string | null = null;
}

function delay(time: number): Promise<void> {
  return new Promise(resolve => {
    setTimeout(resolve, time);
  });
}
