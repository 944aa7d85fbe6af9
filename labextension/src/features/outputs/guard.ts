/**
 * Guards a renderer and decides what it may render.
 */
import {
  RenderedCommon,
  RenderedError,
  RenderedHTML,
  RenderedImage,
  RenderedLatex,
  RenderedMarkdown,
  RenderedSVG,
  RenderedText
} from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';

import { CARD_MIME_TYPE } from '../../api/protocol';
import { ITEM_MIME_TYPE } from '../../api/threads';
import { CardRenderer } from '../../ui/card/CardRenderer';
import { ItemRenderer } from '../../ui/items/ItemRenderer';
import type { ILanguage } from '../../ui/text/language';
import { describeFinding, describeType } from './describe';
import type { IGate } from './gate';
import { examine } from './html';
import type { Finding } from './html';
import { treatmentOf } from './kinds';
import type { Treatment } from './kinds';
import { placeCard } from './placed';
import { originalOf } from './sanitizer';

/** Keeps the layout of an output within the output's own box. */
const CONTAINED_CLASS = 'jp-AgentBox-contained';

/** JupyterLab's renderers whose treatment of untrusted data is known. */
const KNOWN_RENDERERS = [
  RenderedError,
  RenderedHTML,
  RenderedImage,
  RenderedLatex,
  RenderedMarkdown,
  RenderedSVG,
  RenderedText
];

/** This extension's own renderers, which show only text and links. */
const OWN_RENDERERS = new Map<
  string,
  typeof CardRenderer | typeof ItemRenderer
>([
  [CARD_MIME_TYPE, CardRenderer],
  [ITEM_MIME_TYPE, ItemRenderer]
]);

/** A renderer without a class that could be imported; it shows a tree of text. */
const JSON_MIME_TYPE = 'application/json';

/** Restrict a renderer to what the gate allows. For all others it is unchanged. */
export function guardRenderer(
  renderer: IRenderMime.IRenderer,
  mimeType: string,
  gate: IGate,
  language: ILanguage
): IRenderMime.IRenderer {
  const guard = new OutputGuard(renderer, mimeType, gate, language);
  renderer.renderModel = model => guard.show(model);
  return renderer;
}

/** How this renderer's output is treated; a renderer that replaces a known one is unknown. */
function treat(renderer: IRenderMime.IRenderer, mimeType: string): Treatment {
  const own = OWN_RENDERERS.get(mimeType);
  if (own) {
    return renderer instanceof own ? 'shown' : 'blocked';
  }
  const treatment = treatmentOf(mimeType);
  const isKnown =
    treatment === 'widget' ||
    mimeType === JSON_MIME_TYPE ||
    KNOWN_RENDERERS.some(known => renderer instanceof known);
  return isKnown ? treatment : 'blocked';
}

class OutputGuard {
  constructor(
    private readonly _renderer: IRenderMime.IRenderer,
    private readonly _mimeType: string,
    private readonly _gate: IGate,
    private readonly _language: ILanguage
  ) {
    this._render = _renderer.renderModel.bind(_renderer);
    this._treatment = treat(_renderer, _mimeType);
    if (this._treatment === 'sanitized') {
      this._watchSanitizer();
    }
    if (_renderer instanceof RenderedCommon) {
      this._watchDrawing(_renderer);
    }
    _gate.changed.connect(this._onGateChanged, this);
    _renderer.disposed.connect(() => {
      _gate.changed.disconnect(this._onGateChanged, this);
      this._removeCard();
    });
  }

  /** The renderer's present `renderModel`. */
  async show(model: IRenderMime.IMimeModel): Promise<void> {
    this._model = model;
    this._removeCard();
    const isFree = this._isFree(model);
    this._wasFree = isFree;
    this._renderer.toggleClass(CONTAINED_CLASS, !isFree);
    if (isFree) {
      return this._pass(model);
    }
    if (this._allowed !== null && this._allowed === this._dataOf(model)) {
      return this._pass(asTrusted(model, true));
    }
    return this._showRestricted(model);
  }

  /** Make the renderer render a model. */
  private _pass(model: IRenderMime.IMimeModel): Promise<void> {
    this._passed = model;
    return this._render(model);
  }

  /**
   * Whether JupyterLab's own rules apply. An output waits for its gate to be bound. Whatever else uses a renderer, such as a
   * viewer of a file, is no output of a kernel, unless it is trusted without a person: the debugger does that with a
   * variable that it was sent, and a help panel with a page that it was sent.
   */
  private _isFree(model: IRenderMime.IMimeModel): boolean {
    if (this._gate.isBound) {
      return this._gate.verdict === 'open';
    }
    return (
      !isOutput(model) && (!model.trusted || this._gate.elsewhere === 'open')
    );
  }

  /** Whether to tell the person now that something was blocked. */
  private _isClosed(): boolean {
    const { isBound, verdict, elsewhere } = this._gate;
    return (isBound ? verdict : elsewhere) === 'closed';
  }

  private async _showRestricted(model: IRenderMime.IMimeModel): Promise<void> {
    switch (this._treatment) {
      case 'widget':
      case 'shown':
        return this._pass(asTrusted(model, false));
      case 'picture':
        // Not trusted it would not be shown; the renderer makes an `img` of it, in which no script runs.
        return this._pass(asTrusted(model, true));
      case 'sanitized': {
        this._findings = [];
        await this._pass(asTrusted(model, false));
        const [worst] = this._findings;
        if (worst && !this._isAuthors(model)) {
          this._placeCard(
            model,
            describeFinding(worst, this._language.trans),
            true
          );
        }
        return;
      }
      case 'blocked':
        if (this._isAuthors(model)) {
          return this._pass(model);
        }
        this._renderer.node.textContent = '';
        this._placeCard(
          model,
          describeType(this._mimeType, this._language.trans),
          false
        );
    }
  }

  /** The text of a Markdown cell also comes through here; JupyterLab trusts it no more than a file. */
  private _isAuthors(model: IRenderMime.IMimeModel): boolean {
    return (
      this._mimeType === 'text/markdown' && !isOutput(model) && !model.trusted
    );
  }

  private _placeCard(
    model: IRenderMime.IMimeModel,
    kind: string,
    isPartShown: boolean
  ): void {
    if (!this._isClosed() || this._model !== model) {
      return;
    }
    const data = this._dataOf(model);
    const source = model.data[this._mimeType];
    this._removeCard();
    this._remove = placeCard(this._renderer.node, this._language, {
      kind,
      source: typeof source === 'string' ? source : data,
      isPartShown,
      isSandboxed: this._gate.wasSandboxed || !this._gate.isBound,
      isIsolated: isIsolated(this._mimeType, model),
      onAllow: async () => {
        // What is allowed is what the card was about, not what the output may have become.
        this._allowed = data;
        await this.show(this._model ?? model);
      }
    });
  }

  private _removeCard(): void {
    this._remove?.();
    this._remove = null;
  }

  private _dataOf(model: IRenderMime.IMimeModel): string {
    return JSON.stringify(model.data[this._mimeType]);
  }

  /** Observe the input of the renderer's sanitizer, for HTML and for rendered Markdown. */
  private _watchSanitizer(): void {
    const renderer = this._renderer as RenderedHTML;
    const sanitizer = originalOf(renderer.sanitizer);
    const watching: IRenderMime.ISanitizer = Object.create(sanitizer);
    watching.sanitize = (dirty, options) => {
      const sanitize = (html: string): string =>
        sanitizer.sanitize(html, options);
      const model = this._model;
      if (!model || this._isFree(model)) {
        return sanitize(dirty);
      }
      const { html, findings } = examine(dirty, sanitize);
      this._findings = findings;
      return html;
    };
    Object.defineProperty(renderer, 'sanitizer', { value: watching });
  }

  /**
   * A renderer may render by itself, without `renderModel`, such as when the theme changes: what it renders then was
   * passed to it, or comes here first.
   */
  private _watchDrawing(renderer: RenderedCommon): void {
    const render = renderer.render.bind(renderer);
    renderer.render = model =>
      model === this._passed || this._isFree(model)
        ? render(model)
        : this.show(model);
  }

  private _onGateChanged(): void {
    const model = this._model;
    // Plain text is rendered alike with the gate open and closed. Widgets' views are closed by `guardManager`.
    if (!model || ['shown', 'widget'].includes(this._treatment)) {
      return;
    }
    // What was rendered freely runs again if it is rendered again. It stays, unless it must not be there.
    if (this._wasFree && (this._isFree(model) || !this._isClosed())) {
      return;
    }
    void this.show(model);
  }

  private _passed: IRenderMime.IMimeModel | null = null;
  private _wasFree = false;
  private _allowed: string | null = null;
  private _findings: Finding[] = [];
  private _model: IRenderMime.IMimeModel | null = null;
  private _remove: (() => void) | null = null;
  private readonly _render: (model: IRenderMime.IMimeModel) => Promise<void>;
  private readonly _treatment: Treatment;
}

/** Whether a model is that of an output, as sent by a kernel. */
function isOutput(model: IRenderMime.IMimeModel): boolean {
  return 'executionCount' in model;
}

/** Whether the output area puts the rendered output into a frame, as markup. */
function isIsolated(mimeType: string, model: IRenderMime.IMimeModel): boolean {
  const { metadata } = model;
  const own = metadata[mimeType] as { isolated?: unknown } | undefined;
  return Boolean(own?.isolated ?? metadata['isolated']);
}

/** The same data, with another value for whether it is trusted. */
function asTrusted(
  model: IRenderMime.IMimeModel,
  trusted: boolean
): IRenderMime.IMimeModel {
  return {
    trusted,
    data: model.data,
    metadata: model.metadata,
    setData: options => {
      model.setData(options);
    }
  };
}
