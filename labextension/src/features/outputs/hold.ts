/**
 * Holds back the outputs of a page until their guard is loaded.
 */
import type { Kernel } from '@jupyterlab/services';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { IDisposable } from '@lumino/disposable';
import { PromiseDelegate } from '@lumino/coreutils';

import { KernelWatch, watchWidgets } from '../../integrations/sessions';
import type { ISessionTrackers } from '../../integrations/sessions';
import type { KernelLevels } from './levels';

/** Guards a registry, and returns what guards a renderer that was made by it before. */
export type GuardHeld = (
  registry: IRenderMimeRegistry
) => (renderer: IRenderMime.IRenderer, mimeType: string) => void;

/** What is held back. */
export interface IHeldPage extends ISessionTrackers {
  rendermime: IRenderMimeRegistry;
  levels: Pick<KernelLevels, 'known'>;
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
 * and kernels that are not known to be plain get no comms. If it is never released, they never do.
 */
export class OutputsHold {
  constructor(page: IHeldPage) {
    this._hold(page.rendermime);
    this._watches = [
      watchWidgets(page.notebooks, ({ content }) => {
        this._hold(content.rendermime);
      }),
      watchWidgets(page.consoles, ({ console }) => {
        this._hold(console.rendermime);
      }),
      new KernelWatch(page, kernel => {
        if (page.levels.known(kernel.id) !== 'plain') {
          this._silence(kernel);
        }
      })
    ];
  }

  /** Let everything go on under guard. */
  release(guard: GuardHeld): void {
    this._watches.forEach(watch => {
      watch.dispose();
    });
    this._isReleased = true;
    const guards = new Map(
      [...this._registries].map(registry => [registry, guard(registry)])
    );
    for (const { renderer, mimeType, registry, restore } of this._renderers) {
      restore();
      guards.get(registry)?.(renderer, mimeType);
    }
    this._renderers.clear();
    for (const [kernel, handled] of this._kernels) {
      kernel.handleComms = handled;
    }
    this._kernels.clear();
    this._released.resolve();
  }

  private _hold(registry: IRenderMimeRegistry): void {
    if (this._registries.has(registry)) {
      return;
    }
    this._registries.add(registry);
    const createRenderer = registry.createRenderer.bind(registry);
    const getFactory = registry.getFactory.bind(registry);
    const clone = registry.clone.bind(registry);
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
        this._hold(made);
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
    renderer.renderModel = async model => {
      await this._released.promise;
      if (!renderer.isDisposed) {
        await renderer.renderModel(model);
      }
    };
    return renderer;
  }

  /** Let a kernel have no comms. Targets can still be registered: their registration is for later, and done once. */
  private _silence(kernel: Kernel.IKernelConnection): void {
    if (this._kernels.has(kernel)) {
      return;
    }
    const handled = kernel.handleComms;
    this._kernels.set(kernel, handled);
    kernel.handleComms = false;
    const always =
      <A extends unknown[]>(method: (...args: A) => void) =>
      (...args: A): void => {
        if (!this._kernels.has(kernel)) {
          method(...args);
          return;
        }
        // A kernel's connection changes its targets only while it handles comms. No message comes in between.
        kernel.handleComms = handled;
        try {
          method(...args);
        } finally {
          kernel.handleComms = false;
        }
      };
    kernel.registerCommTarget = always(kernel.registerCommTarget.bind(kernel));
    kernel.removeCommTarget = always(kernel.removeCommTarget.bind(kernel));
  }

  private readonly _watches: readonly IDisposable[];
  private readonly _registries = new Set<IRenderMimeRegistry>();
  private readonly _renderers = new Set<IHeldRenderer>();
  private readonly _kernels = new Map<Kernel.IKernelConnection, boolean>();
  private readonly _released = new PromiseDelegate<void>();
  private _isReleased = false;
}
