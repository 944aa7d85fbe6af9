/**
 * The section of the side panel with the pending requests.
 */
import { ReactWidget } from '@jupyterlab/ui-components';
import { PromiseDelegate } from '@lumino/coreutils';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import React from 'react';

import { Forms, OpenForms } from '../../ui/card/forms';
import { CardProvider } from '../../ui/context';
import type { ICardContext } from '../../ui/context';
import { KeptReasons } from './keptReasons';
import type { Reasons } from './keptReasons';
import { PendingFilter } from './pendingFilter';
import { PendingList } from './PendingList';

/** Shows the list, and finds the cards in it. */
export class PendingSection extends ReactWidget {
  constructor(context: ICardContext) {
    super();
    this._context = {
      ...context,
      answered: () => {
        this._isAnswered = true;
      }
    };
  }

  /** What a person filters by. */
  get filter(): PendingFilter {
    return this._filter;
  }

  /** Open the form that rejects all that wait, for a person who asks for it. */
  rejectAll(): void {
    this._filter.text = '';
    this._rejectsAll += 1;
    this.update();
  }

  /** The card after the focused one, or before it. */
  async findNext(step: 1 | -1): Promise<HTMLElement | undefined> {
    await this.rendered();
    const cards = this._cards();
    const current = cards.findIndex(card =>
      card.contains(document.activeElement)
    );
    const start = current < 0 && step < 0 ? 0 : current;
    return cards[(start + step + cards.length) % cards.length];
  }

  /** The card of a request, which is shown even if many older ones are pending, or a filter would hide it. */
  find(id: string): Promise<HTMLElement | undefined> {
    return this._find(id, true);
  }

  /** The table in which a request is decided with others, whose rows stay as they are; without one, its card. */
  async findTable(id: string): Promise<HTMLElement | undefined> {
    const found = await this._find(id, false);
    return found?.closest<HTMLElement>('.jp-AgentBox-batch') ?? found;
  }

  private async _find(
    id: string,
    isOpened: boolean
  ): Promise<HTMLElement | undefined> {
    const { approval } = this._context.model.get(id);
    if (approval && !this._filter.accepts(approval)) {
      this._filter.text = '';
    }
    this._wanted = id;
    this._isOpened = isOpened;
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
    const drawn = new PromiseDelegate<void>();
    this._awaited.push(drawn);
    MessageLoop.sendMessage(this, Widget.Msg.UpdateRequest);
    // Not `renderPromise`, which is kept when the page is idle: a busy one is not for a long time.
    await drawn.promise;
    await nextTask();
  }

  override dispose(): void {
    super.dispose();
    this._keep(this._awaited.splice(0));
  }

  protected override render(): JSX.Element {
    const awaited = [...this._awaited];
    return (
      <OpenForms.Provider value={this._forms}>
        <CardProvider value={this._context}>
          <KeptReasons.Provider value={this._reasons}>
            <PendingList
              filter={this._filter}
              wanted={this._wanted}
              isOpened={this._isOpened}
              rejectsAll={this._rejectsAll}
              onEmptied={this._onEmptied}
            />
          </KeptReasons.Provider>
          <Drawn
            onDrawn={() => {
              this._keep(awaited);
            }}
          />
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

  /** Resolve the promises of callers that wait for the list to be rendered. */
  private _keep(kept: readonly PromiseDelegate<void>[]): void {
    kept.forEach(each => {
      each.resolve();
    });
    this._awaited = this._awaited.filter(each => !kept.includes(each));
  }

  /** After the person's own answer to the last request, the person goes back to where they came from. */
  private readonly _onEmptied = (list: HTMLElement): void => {
    const focused = document.activeElement;
    if (
      this._isAnswered &&
      (focused === document.body || list.contains(focused))
    ) {
      this._context.restoreFocus?.(list);
    }
    this._isAnswered = false;
  };

  private _awaited: PromiseDelegate<void>[] = [];
  private readonly _context: ICardContext;
  private readonly _filter = new PendingFilter();
  private _isAnswered = false;
  private readonly _forms = new Forms();
  /** Whether the wanted request is opened if it is a row. */
  private _isOpened = false;
  private _rejectsAll = 0;
  private readonly _reasons: Reasons = new Map();
  private _wanted: string | null = null;
}

/** Reports that what precedes it is in the document. */
function Drawn({ onDrawn }: { onDrawn: () => void }): null {
  React.useLayoutEffect(onDrawn);
  return null;
}

/** Wait until the page has finished its current work and has delivered the messages that result from it. */
function nextTask(): Promise<void> {
  return new Promise(resolve => {
    setTimeout(resolve);
  });
}
