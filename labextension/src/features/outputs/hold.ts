/**
 * Holds back the outputs of a page until their guard is loaded.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel } from '@jupyterlab/services';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { IDisposable } from '@lumino/disposable';
import { PromiseDelegate } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import { watchWidgets } from '../../integrations/sessions';
import type { ISessionTrackers } from '../../integrations/sessions';
import type { SessionGate, SessionGates } from './gate';
import type { KernelLevels } from './levels';
import { silence, unsilence } from './silence';
import { keepNotebookUntrusted } from './trust';

/** Guards a registry, of this session if any, and returns what guards a renderer that was made by it before. */
export type MakeGuard = (
  registry: IRenderMimeRegistry,
  context: ISessionContext | null
) => (renderer: IRenderMime.IRenderer, mimeType: string) => void;

/** What is held back. */
export interface IHeldPage extends ISessionTrackers {
  rendermime: IRenderMimeRegistry;
  levels: Pick<KernelLevels, 'known'>;
  sessions: SessionGates;
}

interface IHeldRenderer {
  renderer: IRenderMime.IRenderer;
  mimeType: string;
  registry: IRenderMimeRegistry;
  /** Give it back its own way to render. */
  restore: () => void;
}

/**
 * Holds back the outputs of a page, from the construction to `release`: renderers that are made meanwhile render nothing,
 * kernels that are not known to be plain get no comms, and their cells do not become trusted. Without a release, nothing is
 * rendered and these kernels have no comms.
 */
export class OutputsHold {
  constructor(private readonly _page: IHeldPage) {
    this._hold(_page.rendermime);
    // Also after the release: a notebook's trust does not depend on the guard.
    watchWidgets(_page.notebooks, ({ content, sessionContext }) => {
      keepNotebookUntrusted(content, _page.sessions.of(sessionContext));
    });
    this._watches = [
      watchWidgets(_page.notebooks, ({ content, sessionContext }) => {
        this._holdSession(content.rendermime, sessionContext);
      }),
      watchWidgets(_page.consoles, ({ console, sessionContext }) => {
        this._holdSession(console.rendermime, sessionContext);
      })
    ];
  }

  /** Let everything go on under guard. */
  release(makeGuard: MakeGuard): void {
    this._watches.forEach(watch => {
      watch.dispose();
    });
    Signal.clearData(this);
    this._isReleased = true;
    const guards = new Map(
      [...this._registries.keys()].map(registry => [
        registry,
        makeGuard(registry, this._contextOf(registry))
      ])
    );
    for (const { renderer, mimeType, registry, restore } of this._renderers) {
      restore();
      guards.get(registry)?.(renderer, mimeType);
    }
    this._renderers.clear();
    for (const kernel of this._kernels) {
      unsilence(kernel, this);
    }
    this._kernels.clear();
    this._released.resolve();
  }

  private _holdSession(
    registry: IRenderMimeRegistry,
    context: ISessionContext
  ): void {
    this._hold(registry);
    this._contexts.set(registry, context);
    const session = this._page.sessions.of(context);
    session.changed.connect(this._onSessionChanged, this);
    this._onSessionChanged(session);
  }

  /** Whenever a session has another kernel, or the server has said what it is. */
  private _onSessionChanged({ kernel }: SessionGate): void {
    if (!kernel) {
      return;
    }
    if (this._page.levels.known(kernel.id) === 'plain') {
      this._kernels.delete(kernel);
      unsilence(kernel, this);
    } else {
      this._kernels.add(kernel);
      silence(kernel, this);
    }
  }

  /** The session of a registry; a clone of a notebook's registry is the notebook's too. */
  private _contextOf(registry: IRenderMimeRegistry): ISessionContext | null {
    const context = this._contexts.get(registry);
    if (context) {
      return context.isDisposed ? null : context;
    }
    const original = this._registries.get(registry);
    return original ? this._contextOf(original) : null;
  }

  private _hold(
    registry: IRenderMimeRegistry,
    original: IRenderMimeRegistry | null = null
  ): void {
    if (this._registries.has(registry)) {
      return;
    }
    this._registries.set(registry, original);
    const createRenderer = registry.createRenderer.bind(registry);
    const getFactory = registry.getFactory.bind(registry);
    const clone = registry.clone.bind(registry);
    const preferredMimeType = registry.preferredMimeType.bind(registry);
    // The type is chosen once: as under guard, what is to be blocked is not passed over in favor of a poorer type.
    registry.preferredMimeType = (bundle, safe) => {
      const context = this._isReleased ? null : this._contextOf(registry);
      const isClosed =
        context && this._page.sessions.of(context).verdict === 'closed';
      return preferredMimeType(bundle, isClosed ? 'any' : safe);
    };
    registry.createRenderer = mimeType =>
      this._holdRenderer(createRenderer(mimeType), mimeType, registry);
    registry.getFactory = mimeType => {
      const factory = getFactory(mimeType);
      if (!factory || this._isReleased) {
        return factory;
      }
      const held = Object.create(factory) as IRenderMime.IRendererFactory;
      return Object.assign(held, {
        createRenderer: (options: IRenderMime.IRendererOptions) =>
          this._holdRenderer(
            factory.createRenderer(options),
            options.mimeType,
            registry
          )
      });
    };
    registry.clone = options => {
      const made = clone(options);
      if (!this._isReleased) {
        this._hold(made, registry);
      }
      return made;
    };
  }

  private _holdRenderer(
    renderer: IRenderMime.IRenderer,
    mimeType: string,
    registry: IRenderMimeRegistry
  ): IRenderMime.IRenderer {
    if (this._isReleased) {
      return renderer;
    }
    const render = renderer.renderModel.bind(renderer);
    const held: IHeldRenderer = {
      renderer,
      mimeType,
      registry,
      restore: () => {
        renderer.renderModel = render;
      }
    };
    this._renderers.add(held);
    renderer.disposed.connect(() => {
      this._renderers.delete(held);
    });
    let newest: IRenderMime.IMimeModel;
    let rendered: Promise<void> | null = null;
    const renderNewest = async (): Promise<void> => {
      await this._released.promise;
      if (!renderer.isDisposed) {
        await renderer.renderModel(newest);
      }
    };
    // Of several models only the newest is rendered: a renderer may finish them in another order.
    renderer.renderModel = model => {
      newest = model;
      rendered ??= renderNewest();
      return rendered;
    };
    return renderer;
  }

  private readonly _watches: readonly IDisposable[];
  /** The registries, each with the one of which it is a clone. */
  private readonly _registries = new Map<
    IRenderMimeRegistry,
    IRenderMimeRegistry | null
  >();
  private readonly _contexts = new Map<IRenderMimeRegistry, ISessionContext>();
  private readonly _renderers = new Set<IHeldRenderer>();
  private readonly _kernels = new Set<Kernel.IKernelConnection>();
  private readonly _released = new PromiseDelegate<void>();
  private _isReleased = false;
}
