/**
 * An item of an agent's turn in an output: a renderer of its MIME type.
 */
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React from 'react';

import { ITEM_MIME_TYPE, readItem } from '../../api/threads';
import type { IItemOutput, ReadTurn } from '../../api/threads';
import { CardProvider } from '../context';
import type { ICardContext } from '../context';
import { ItemView } from './ItemView';
import type { IMarkdownViewOptions } from './MarkdownView';
import { showWholeTurn } from './wholeTurn';

/** Better than the rank of Markdown. */
const RANK = -20;

/** What items need beside what cards do. */
export interface IItemContext extends ICardContext {
  /** Put the code of a turn below the cell that a node is in. */
  insertCells?: (node: HTMLElement, turnId: string) => void;
  /** Read a turn from the server. */
  readTurn?: ReadTurn;
}

/** Shows an item, and changes with it. */
export class ItemRenderer extends ReactWidget implements IRenderMime.IRenderer {
  constructor(
    private readonly _context: IItemContext,
    options: IRenderMime.IRendererOptions
  ) {
    super();
    this.addClass('jp-AgentBox-turnItem');
    // The notebook's shortcuts would take Enter from buttons and links.
    this.node.dataset['lmSuppressShortcuts'] = 'true';
    this._markdown = {
      parser: options.markdownParser ?? null,
      sanitizer: options.sanitizer,
      typesetter: options.latexTypesetter,
      trans: _context.trans
    };
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const text = model.data['text/plain'];
    this._output = readItem(model.data[ITEM_MIME_TYPE]);
    this._fallback = typeof text === 'string' ? text : '';
    this.update();
    return this.renderPromise ?? Promise.resolve();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    showWholeTurn(this);
  }

  protected override render(): JSX.Element {
    const output = this._output;
    return (
      <CardProvider value={this._context}>
        {output ? (
          <ItemView
            output={output}
            markdown={this._markdown}
            onInsert={this._inserting(output)}
            readTurn={this._context.readTurn}
          />
        ) : (
          <p className="jp-AgentBox-notice">{this._fallback}</p>
        )}
      </CardProvider>
    );
  }

  /** Only a notebook has cells. */
  private _inserting({ turnId }: IItemOutput): (() => void) | undefined {
    const { insertCells } = this._context;
    return insertCells && turnId && this.node.closest('.jp-Notebook')
      ? () => {
          insertCells(this.node, turnId);
        }
      : undefined;
  }

  private _fallback = '';
  private readonly _markdown: IMarkdownViewOptions;
  private _output: IItemOutput | null = null;
}

/** The factory for a notebook's or a console's renderers. It makes text and links only, so it is safe. */
export function itemRendererFactory(context: IItemContext): {
  factory: IRenderMime.IRendererFactory;
  rank: number;
} {
  const factory: IRenderMime.IRendererFactory = {
    safe: true,
    mimeTypes: [ITEM_MIME_TYPE],
    createRenderer: options => new ItemRenderer(context, options)
  };
  return { factory, rank: RANK };
}
