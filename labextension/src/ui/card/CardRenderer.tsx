/**
 * The card in an output: a renderer of the request's MIME type.
 */
import { ReactWidget } from '@jupyterlab/ui-components';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import React from 'react';

import { Forms, OpenForms } from './forms';
import { RequestCard } from './RequestCard';
import { CardProvider } from '../context';
import type { ICardContext } from '../context';
import { CARD_MIME_TYPE } from '../../api/protocol';
import type { IApproval } from '../../api/protocol';
import { savedLine, saysThatItWaits } from '../text/savedLine';

/** Better than the rank of ipywidgets' renderer (-10), so that the card needs no widget manager. */
const RANK = -20;

/** Shows the card of the request that an output names. */
export class CardRenderer extends ReactWidget implements IRenderMime.IRenderer {
  constructor(private readonly _context: ICardContext) {
    super();
    this.addClass('jp-AgentBox-output');
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const data = model.data[CARD_MIME_TYPE] as { request_id?: unknown } | null;
    const text = model.data['text/plain'];
    this._requestId =
      typeof data?.request_id === 'string' ? data.request_id : '';
    this._fallback = typeof text === 'string' ? text : '';
    this._model = model;
    this.update();
    return this.renderPromise ?? Promise.resolve();
  }

  protected override render(): JSX.Element {
    return (
      <OpenForms.Provider value={this._forms}>
        <CardProvider value={this._context}>
          <RequestCard
            requestId={this._requestId}
            fallback={this._fallback}
            isUnderCell={true}
            onFinal={this._correct}
          />
        </CardProvider>
      </OpenForms.Provider>
    );
  }

  /** Put what became of a request in the place of a saved text that says that it waits. */
  private readonly _correct = (approval: IApproval): void => {
    const model = this._model;
    const line = savedLine(approval);
    if (model && line !== null && saysThatItWaits(model.data['text/plain'])) {
      const html = document.createElement('div');
      html.textContent = line;
      const texts = { 'text/html': html.outerHTML, 'text/plain': line };
      model.setData({ data: { ...model.data, ...texts } });
    }
  };

  private _fallback = '';
  private readonly _forms = new Forms();
  private _model: IRenderMime.IMimeModel | null = null;
  private _requestId = '';
}

/** The factory for a notebook's or a console's renderers. The card shows text only, so it is safe. */
export function cardRendererFactory(context: ICardContext): {
  factory: IRenderMime.IRendererFactory;
  rank: number;
} {
  const factory: IRenderMime.IRendererFactory = {
    safe: true,
    mimeTypes: [CARD_MIME_TYPE],
    createRenderer: () => new CardRenderer(context)
  };
  return { factory, rank: RANK };
}
