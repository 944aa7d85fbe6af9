/**
 * The card in an output: a renderer for the MIME type of requests.
 */
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import React from 'react';

import { Forms, OpenForms } from './forms';
import { RequestGroup } from './RequestGroup';
import { keepFromNotebook } from '../guarded/keepFromNotebook';
import { OutputRenderer } from '../OutputRenderer';
import { CardProvider } from '../context';
import type { ICardContext } from '../context';
import { CARD_MIME_TYPE } from '../../api/protocol';
import type { IApproval } from '../../api/protocol';
import { savedLine, saysThatItWaits } from '../text/savedLine';

/** Takes precedence over ipywidgets' renderer (-10), so that the card needs no widget manager. */
const RANK = -20;

/** The maximum number of requests in an output; the kernel side puts fewer into one. */
const MOST_REQUESTS = 200;

/** Shows the card of an output's request. */
export class CardRenderer
  extends OutputRenderer
  implements IRenderMime.IRenderer
{
  constructor(private readonly _context: ICardContext) {
    super();
    this.addClass('jp-AgentBox-output');
    this.node.addEventListener('beforeinput', keepLineBreak, true);
    keepFromNotebook(this.node);
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const text = model.data['text/plain'];
    this._requestIds = requestIdsOf(model);
    this._fallback = typeof text === 'string' ? text : '';
    this._model = model;
    return this.renderContent();
  }

  protected override content(): JSX.Element {
    return (
      <OpenForms.Provider value={this._forms}>
        <CardProvider value={this._context}>
          <RequestGroup
            requestIds={this._requestIds}
            fallback={this._fallback}
            onFinal={this._correct}
          />
        </CardProvider>
      </OpenForms.Provider>
    );
  }

  /** Replace a saved text that says that a request waits by its outcome. */
  private readonly _correct = (approval: IApproval): void => {
    const model = this._model;
    const line = savedLine(approval);
    const said = model?.data['text/plain'];
    const lines = typeof said === 'string' ? said.split('\n') : [];
    const isWhole = lines.length === this._requestIds.length;
    const index = this._requestIds.indexOf(approval.id);
    if (model && line !== null && isWhole && saysThatItWaits(lines[index])) {
      lines[index] = line;
      const texts = {
        'text/html': lines.map(asHtml).join(''),
        'text/plain': lines.join('\n')
      };
      model.setData({ data: { ...model.data, ...texts } });
    }
  };

  private _fallback = '';
  private readonly _forms = new Forms();
  private _model: IRenderMime.IMimeModel | null = null;
  private _requestIds: readonly string[] = [''];
}

/**
 * Hide a line break in a field of the card from JupyterLab, which cancels all line breaks within a cell because Shift+Enter
 * runs the cell.
 */
function keepLineBreak(event: InputEvent): void {
  if (event.inputType === 'insertLineBreak') {
    event.stopPropagation();
  }
}

/** The requests that an output names, in order; code can write anything there. */
function requestIdsOf(model: IRenderMime.IMimeModel): readonly string[] {
  const data = model.data[CARD_MIME_TYPE] as {
    request_id?: unknown;
    request_ids?: unknown;
  } | null;
  const ids: unknown[] = Array.isArray(data?.request_ids)
    ? data.request_ids.slice(0, MOST_REQUESTS)
    : [data?.request_id];
  const texts = ids.filter((id): id is string => typeof id === 'string');
  return texts.length > 0 ? [...new Set(texts)] : [''];
}

function asHtml(line: string): string {
  const html = document.createElement('div');
  html.textContent = line;
  return html.outerHTML;
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
