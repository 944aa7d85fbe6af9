/**
 * Stands before one renderer and decides what it may render.
 */
import {
  RenderedError,
  RenderedHTML,
  RenderedImage,
  RenderedLatex,
  RenderedMarkdown,
  RenderedSVG,
  RenderedText
} from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { TranslationBundle } from '@jupyterlab/translation';

import { CARD_MIME_TYPE } from '../protocol';
import { CardRenderer } from '../widgets/card';
import { describeFinding, describeType } from './describe';
import { SessionGate } from './gate';
import type { IGate } from './gate';
import { examine } from './html';
import type { Finding } from './html';
import { treatmentOf } from './kinds';
import type { Treatment } from './kinds';
import { placeCard } from './placed';
import { originalOf } from './sanitizer';

/** Keeps what an output lays out within the output's own box. */
const CONTAINED_CLASS = 'jp-AgentBox-contained';

/** JupyterLab's renderers, of which it is known what they do with data that is not trusted. */
const KNOWN_RENDERERS = [
  CardRenderer,
  RenderedError,
  RenderedHTML,
  RenderedImage,
  RenderedLatex,
  RenderedMarkdown,
  RenderedSVG,
  RenderedText
];

/** Has no class that could be imported; it shows a tree of text. */
const JSON_MIME_TYPE = 'application/json';

/** Let a renderer render only what the gate lets through. It stays what it is for all others. */
export function guardRenderer(
  renderer: IRenderMime.IRenderer,
  mimeType: string,
  gate: IGate,
  trans: TranslationBundle
): IRenderMime.IRenderer {
  const guard = new OutputGuard(renderer, mimeType, gate, trans);
  renderer.renderModel = model => guard.show(model);
  return renderer;
}

/** How this renderer's output is treated; a renderer that others put in a known one's place is not known. */
function treat(renderer: IRenderMime.IRenderer, mimeType: string): Treatment {
  if (mimeType === CARD_MIME_TYPE) {
    return renderer instanceof CardRenderer ? 'shown' : 'blocked';
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
    private readonly _trans: TranslationBundle
  ) {
    this._render = _renderer.renderModel.bind(_renderer);
    this._treatment = treat(_renderer, _mimeType);
    if (this._treatment === 'sanitized') {
      this._watchSanitizer();
    }
    _gate.changed.connect(this._onGateChanged, this);
    _renderer.disposed.connect(() => {
      _gate.changed.disconnect(this._onGateChanged, this);
      this._removeCard();
    });
  }

  /** What the renderer's `renderModel` is now. */
  async show(model: IRenderMime.IMimeModel): Promise<void> {
    this._model = model;
    this._removeCard();
    const isFree = this._isFree(model);
    this._renderer.toggleClass(CONTAINED_CLASS, !isFree);
    if (isFree) {
      return this._render(model);
    }
    if (this._allowed !== null && this._allowed === this._dataOf(model)) {
      return this._render(asTrusted(model, true));
    }
    return this._showRestricted(model);
  }

  /**
   * Whether JupyterLab's own rules hold. An output waits for its gate to be bound; what else uses a renderer, such as a
   * viewer of a file, is no output of a kernel, unless it is trusted without a person: the debugger does that with a
   * variable that it was sent.
   */
  private _isFree(model: IRenderMime.IMimeModel): boolean {
    return (
      this._gate.verdict === 'open' ||
      (!this._gate.isBound && !isOutput(model) && !this._isOfUnknown(model))
    );
  }

  private _isOfUnknown(model: IRenderMime.IMimeModel): boolean {
    return !this._gate.isBound && model.trusted && SessionGate.wasAnySandboxed;
  }

  private async _showRestricted(model: IRenderMime.IMimeModel): Promise<void> {
    switch (this._treatment) {
      case 'widget':
      case 'shown':
        return this._render(asTrusted(model, false));
      case 'picture':
        // Not trusted it would not be shown; the renderer makes an `img` of it, in which no script runs.
        return this._render(asTrusted(model, true));
      case 'sanitized': {
        this._findings = [];
        await this._render(asTrusted(model, false));
        const [worst] = this._findings;
        if (worst && this._mayHaveCard(model)) {
          this._placeCard(model, describeFinding(worst, this._trans), true);
        }
        return;
      }
      case 'blocked':
        this._renderer.node.textContent = '';
        this._placeCard(
          model,
          describeType(this._mimeType, this._trans),
          false
        );
    }
  }

  /** The text of a Markdown cell comes through here too; it has its own way to be trusted. */
  private _mayHaveCard(model: IRenderMime.IMimeModel): boolean {
    return isOutput(model) || this._mimeType !== 'text/markdown';
  }

  private _placeCard(
    model: IRenderMime.IMimeModel,
    kind: string,
    isPartShown: boolean
  ): void {
    const isClosed =
      this._gate.verdict === 'closed' || this._isOfUnknown(model);
    if (!isClosed || this._model !== model) {
      return;
    }
    const data = this._dataOf(model);
    const source = model.data[this._mimeType];
    this._removeCard();
    this._remove = placeCard(this._renderer.node, {
      kind,
      source: typeof source === 'string' ? source : data,
      isPartShown,
      isSandboxed: this._gate.wasSandboxed || this._isOfUnknown(model),
      isIsolated: isIsolated(this._mimeType, model),
      trans: this._trans,
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

  /** Hear what the renderer's sanitizer is given, for HTML and for what Markdown becomes. */
  private _watchSanitizer(): void {
    const renderer = this._renderer as RenderedHTML;
    const sanitizer = originalOf(renderer.sanitizer);
    const watching: IRenderMime.ISanitizer = Object.create(sanitizer);
    watching.sanitize = (dirty, options) => {
      const clean = sanitizer.sanitize(dirty, options);
      const model = this._model;
      if (!model || this._isFree(model) || !this._mayHaveCard(model)) {
        return clean;
      }
      const { html, findings } = examine(dirty, clean);
      this._findings = findings;
      return html;
    };
    Object.defineProperty(renderer, 'sanitizer', { value: watching });
  }

  private _onGateChanged(): void {
    // A text is the same either way, and a view of a widget is taken down by its manager.
    if (this._model && !['shown', 'widget'].includes(this._treatment)) {
      void this.show(this._model);
    }
  }

  private _allowed: string | null = null;
  private _findings: Finding[] = [];
  private _model: IRenderMime.IMimeModel | null = null;
  private _remove: (() => void) | null = null;
  private readonly _render: (model: IRenderMime.IMimeModel) => Promise<void>;
  private readonly _treatment: Treatment;
}

/** Whether a model is an output's, as a kernel sent it. */
function isOutput(model: IRenderMime.IMimeModel): boolean {
  return 'executionCount' in model;
}

/** Whether the output area puts what is rendered into a frame, as markup. */
function isIsolated(mimeType: string, model: IRenderMime.IMimeModel): boolean {
  const { metadata } = model;
  const own = metadata[mimeType] as { isolated?: unknown } | undefined;
  return Boolean(own?.isolated ?? metadata['isolated']);
}

/** The same data, with our own word for whether it is trusted. */
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
