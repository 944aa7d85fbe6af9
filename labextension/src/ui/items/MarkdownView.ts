/**
 * Shows Markdown that grows; blocks that have not changed are not rendered again.
 */
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { IDisposable } from '@lumino/disposable';

import { hasMath, toNodes } from './markdown';
import type { IMarkdownContext } from './markdown';

/** What a view of Markdown needs. */
export interface IMarkdownViewOptions extends IMarkdownContext {
  typesetter: IRenderMime.ILatexTypesetter | null;
}

/** Shows the latest text in a node. */
export class MarkdownView implements IDisposable {
  constructor(
    private readonly _host: HTMLElement,
    private readonly _options: IMarkdownViewOptions
  ) {}

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
  }

  /** Show a text. Of the texts that arrive while one is being rendered, only the last is rendered next. */
  async show(text: string): Promise<void> {
    this._wanted = text;
    if (this._isBusy) {
      return;
    }
    this._isBusy = true;
    try {
      while (this._wanted !== this._shown && !this._isDisposed) {
        const next = this._wanted;
        this._draw(await this._render(next));
        this._shown = next;
      }
    } finally {
      this._isBusy = false;
    }
  }

  private async _render(text: string): Promise<Node[]> {
    try {
      return await toNodes(text, this._options);
    } catch (error) {
      console.warn('Markdown of an agent is shown as text.', error);
      return toNodes(text, { ...this._options, parser: null });
    }
  }

  /** Keep the unchanged blocks at the beginning: a person may be reading them, or selecting text in them. */
  private _draw(nodes: Node[]): void {
    if (this._isDisposed) {
      return;
    }
    const sources = nodes.map(sourceOf);
    let same = 0;
    while (
      same < sources.length &&
      same < this._sources.length &&
      sources[same] === this._sources[same]
    ) {
      same++;
    }
    const before = [...this._host.childNodes];
    const added = nodes.slice(same);
    before.slice(same).forEach(node => {
      node.remove();
    });
    this._host.append(...added);
    this._sources = sources;
    added.forEach(node => {
      this._typeset(node);
    });
  }

  private _typeset(node: Node): void {
    if (node instanceof HTMLElement && hasMath(node.textContent ?? '')) {
      void this._options.typesetter?.typeset(node);
    }
  }

  private _isBusy = false;
  private _isDisposed = false;
  private _shown: string | null = null;
  private _sources: string[] = [];
  private _wanted = '';
}

function sourceOf(node: Node): string {
  return node instanceof Element ? node.outerHTML : (node.textContent ?? '');
}
