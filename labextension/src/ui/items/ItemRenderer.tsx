/**
 * The renderer for the MIME type of an item of an agent's turn.
 */
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { Message } from '@lumino/messaging';
import React from 'react';

import { ITEM_MIME_TYPE, readItem } from '../../api/threads';
import type { IItemOutput, ReadTurn } from '../../api/threads';
import { OutputRenderer } from '../OutputRenderer';
import { CardProvider } from '../context';
import type { ICardContext } from '../context';
import { ItemView } from './ItemView';
import type { IMarkdownViewOptions } from './MarkdownView';
import { showWholeTurn } from './wholeTurn';

/** Preferred to Markdown. */
const RANK = -20;

/** What items need in addition to what cards need. */
export interface IItemContext extends ICardContext {
  /** Insert the code of a turn as cells, below the cell that contains a node. */
  insertCells?: (node: HTMLElement, turnId: string) => void;
  /** Read a turn from the server. */
  readTurn?: ReadTurn;
}

/** Shows an item, and updates when the item changes. */
export class ItemRenderer
  extends OutputRenderer
  implements IRenderMime.IRenderer
{
  constructor(
    private readonly _context: IItemContext,
    options: IRenderMime.IRendererOptions
  ) {
    super();
    this.addClass('jp-AgentBox-turnItem');
    // Otherwise the notebook's shortcuts would handle Enter on buttons and links.
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
    return this.renderContent();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    showWholeTurn(this);
  }

  protected override content(): JSX.Element {
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

/** The factory of these renderers for a notebook or a console; safe, as they create only text and links. */
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
