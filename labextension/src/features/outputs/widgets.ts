/**
 * Prevents ipywidgets with their own code from running it until a person allows one of them.
 *
 * All models and views are made of classes that the widget manager loads by name, whether a kernel opened a comm, was
 * asked for its state, or a notebook had been saved with it. So this stands before `loadClass`: the standard modules
 * pass, and for any other there is a stand-in that holds the state and shows a card.
 */
import {
  DOMWidgetModel,
  DOMWidgetView,
  ErrorWidgetView,
  put_buffers,
  WidgetModel,
  WidgetView
} from '@jupyter-widgets/base';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { MODULE_NAME } from '../../integrations/ipywidgets';
import type { ILanguage } from '../../ui/text/language';
import { describeFinding } from './describe';
import type { IGate } from './gate';
import { examine } from './html';
import { placeCard } from './placed';
import { harmlessClass } from './widgetLooks';

/** Modules whose classes accept data and no code. */
const STANDARD_MODULES: ReadonlySet<string> = new Set([
  '@jupyter-widgets/base',
  '@jupyter-widgets/controls',
  '@jupyter-widgets/output',
  MODULE_NAME
]);

/** Views of the standard modules that put their value into the page as markup. */
const MARKUP_VIEWS: ReadonlySet<string> = new Set(['HTMLView', 'HTMLMathView']);

/** The module of the stand-in's view; no extension has it. */
const STAND_IN_MODULE = 'jupyter-agentbox-stand-in';

const REFERENCE = /^IPY_MODEL_(.+)$/;

/** The part of a widget manager that is used here. */
export interface IManager {
  loadClass(name: string, module: string, version: string): Promise<unknown>;
  get_model(id: string): Promise<WidgetModel>;
  create_view(model: WidgetModel): Promise<DOMWidgetView>;
  register_model(id: string, model: Promise<WidgetModel>): void;
  /** Sanitizes markup in descriptions. */
  inline_sanitize(source: string): string;
}

/** What a guarded manager needs besides its gate. */
export interface IWidgetContext {
  sanitizer: IRenderMime.ISanitizer;
  language: ILanguage;
}

type State = Record<string, unknown>;
type ModelClass = typeof WidgetModel;
type ViewClass = typeof DOMWidgetView;

const guarded = new WeakSet<object>();

/** Guard a manager; return whether it can be guarded. */
export function guardManager(
  manager: object | null,
  gate: IGate,
  context: IWidgetContext
): boolean {
  if (manager === null || !isManager(manager)) {
    return false;
  }
  if (!guarded.has(manager)) {
    guarded.add(manager);
    new ManagerGuard(manager, gate, context);
  }
  return true;
}

function isManager(value: object): value is IManager {
  return [
    'loadClass',
    'get_model',
    'create_view',
    'register_model',
    'inline_sanitize'
  ].every(name => typeof Reflect.get(value, name) === 'function');
}

/**
 * Let no text of an error become markup: ipywidgets puts it into the page when a person clicks on the broken widget,
 * and a kernel can choose a part of it.
 */
export function hardenErrors(): void {
  const { prototype } = ErrorWidgetView;
  const { render } = prototype;
  prototype.render = function (this: ErrorWidgetView): void {
    const generate = this.generateErrorMessage.bind(this);
    this.generateErrorMessage = () => {
      const { msg, stack } = generate();
      return { msg: escapeMarkup(msg ?? ''), stack: escapeMarkup(stack) };
    };
    render.call(this);
  };
}

/** Text, as markup. */
function escapeMarkup(text: unknown): string {
  const node = document.createElement('span');
  node.textContent = String(text);
  return node.innerHTML;
}

/** The state of a widget whose class was not loaded. */
class StandInModel extends DOMWidgetModel {
  override defaults(): Backbone.ObjectHash {
    return {
      ...super.defaults(),
      _model_module: STAND_IN_MODULE,
      _model_name: 'StandInModel',
      _view_module: STAND_IN_MODULE,
      _view_name: 'StandInView',
      state: {}
    };
  }

  /** The state is not processed before the class is known. */
  static override _deserialize_state(state: State): Promise<State> {
    return Promise.resolve({ state });
  }

  get state(): State {
    return this.get('state') as State;
  }

  /** Store the kernel's changes, for the class that may be loaded later. */
  override _handle_comm_msg(
    msg: Parameters<WidgetModel['_handle_comm_msg']>[0]
  ): Promise<void> {
    const data = msg.content.data as {
      method?: string;
      state?: State;
      buffer_paths?: (string | number)[][];
    };
    if (data.method === 'update' && data.state) {
      put_buffers(
        data.state as Parameters<typeof put_buffers>[0],
        data.buffer_paths ?? [],
        (msg.buffers ?? []) as Parameters<typeof put_buffers>[2]
      );
      this.set('state', { ...this.state, ...data.state });
    }
    return Promise.resolve();
  }
}

class ManagerGuard {
  constructor(
    private readonly _manager: IManager,
    private readonly _gate: IGate,
    private readonly _context: IWidgetContext
  ) {
    this._loadClass = _manager.loadClass.bind(_manager);
    this._standInView = standInView(this);
    _manager.loadClass = async (name, module, version) => {
      await _gate.settled();
      return _gate.verdict === 'open'
        ? this._loadClass(name, module, version)
        : this._load(name, module, version);
    };
    const sanitizeInline = _manager.inline_sanitize.bind(_manager);
    _manager.inline_sanitize = source =>
      _gate.verdict === 'open'
        ? sanitizeInline(source)
        : examine(source, dirty => sanitizeInline(dirty)).html;
  }

  /** Show the card of a stand-in, or of a standard model with its own view. */
  show(view: DOMWidgetView): void {
    const { language } = this._context;
    const { model } = view;
    const isStandIn = model instanceof StandInModel;
    const module: unknown = isStandIn
      ? model.module
      : model.get('_view_module');
    const code: unknown = isStandIn ? model.state['_esm'] : undefined;
    const remove = placeCard(view.el, language, {
      kind: language.trans.__('Widget from module %1', String(module)),
      source: typeof code === 'string' ? code : undefined,
      isSandboxed: this._gate.wasSandboxed,
      isInWidget: true,
      onAllow: async () => {
        const real = isStandIn ? await this._release(model) : model;
        this._released.add(real);
        this._hasReleased = true;
        const allowed = await this._manager.create_view(real);
        remove();
        Widget.attach(allowed.luminoWidget, view.el);
        view.once('remove', () => {
          allowed.remove();
        });
      }
    });
    view.once('remove', remove);
  }

  private async _load(
    name: string,
    module: string,
    version: string
  ): Promise<unknown> {
    if (module === STAND_IN_MODULE) {
      return this._standInView;
    }
    if (!STANDARD_MODULES.has(module)) {
      const real = this._hasReleased
        ? await this._loadClass(name, module, version)
        : null;
      return this._standIn(name, module, version, real as ViewClass | null);
    }
    const found = await this._loadClass(name, module, version);
    if (!isWidgetClass(found)) {
      throw new Error('What was asked for is no class of a widget.');
    }
    const View = harmlessClass(found);
    return MARKUP_VIEWS.has(name)
      ? safeMarkupView(View as ViewClass, this._gate, this._context)
      : View;
  }

  /** A class for both models and views: the manager does not say which of the two it wants. */
  private _standIn(
    name: string,
    module: string,
    version: string,
    real: ViewClass | null
  ): ModelClass {
    const View = this._standInView;
    const released = this._released;
    class StandIn extends StandInModel {}
    this._identities.set(StandIn, { name, module, version });
    return new Proxy(StandIn, {
      construct: (target, values: unknown[]) => {
        const [first] = values as [{ model?: unknown }];
        if (!(first.model instanceof WidgetModel)) {
          return Reflect.construct(target, values) as object;
        }
        const isReleased = real !== null && released.has(first.model);
        return Reflect.construct(isReleased ? real : View, values) as object;
      }
    });
  }

  /** Create the model that a stand-in replaces, and those to which it refers. */
  private async _release(model: StandInModel): Promise<WidgetModel> {
    let real: WidgetModel | null = null;
    for (const one of await this._family(model)) {
      real = await this._make(one);
    }
    return real as WidgetModel;
  }

  /** The stand-ins that a model needs, itself last. */
  private async _family(model: StandInModel): Promise<StandInModel[]> {
    const found = new Set<StandInModel>();
    const visit = async (one: StandInModel): Promise<StandInModel[]> => {
      found.add(one);
      const family: StandInModel[] = [];
      for (const id of references(one.state)) {
        const child = await this._manager.get_model(id);
        if (child instanceof StandInModel && !found.has(child)) {
          family.push(...(await visit(child)));
        }
      }
      return [...family, one];
    };
    return visit(model);
  }

  private async _make(model: StandInModel): Promise<WidgetModel> {
    const identity = this._identities.get(model.constructor);
    const made = this._made.get(model);
    if (made || !identity) {
      return made ?? model;
    }
    const { name, module, version } = identity;
    const Real = (await this._loadClass(name, module, version)) as ModelClass;
    const manager = model.widget_manager;
    const state = await Real._deserialize_state(
      model.state as Parameters<ModelClass['_deserialize_state']>[0],
      manager
    );
    const real = new Real(state as Backbone.ObjectHash, {
      widget_manager: manager,
      model_id: model.model_id,
      comm: model.comm
    });
    real.name = model.name;
    real.module = model.module;
    this._made.set(model, real);
    this._released.add(real);
    this._hasReleased = true;
    this._manager.register_model(model.model_id, Promise.resolve(real));
    return real;
  }

  private _hasReleased = false;
  private readonly _identities = new WeakMap<
    object,
    { name: string; module: string; version: string }
  >();
  private readonly _loadClass: IManager['loadClass'];
  private readonly _made = new WeakMap<StandInModel, WidgetModel>();
  private readonly _released = new WeakSet<WidgetModel>();
  private readonly _standInView: ViewClass;
}

function standInView(guard: ManagerGuard): ViewClass {
  return class extends DOMWidgetView {
    override render(): void {
      super.render();
      guard.show(this);
    }
  };
}

/** A view that shows its markup sanitized, and all of it when a person allows that. */
function safeMarkupView(
  View: ViewClass,
  gate: IGate,
  context: IWidgetContext
): ViewClass {
  return class extends View {
    override update(options?: unknown): void {
      const { model } = this;
      const value = String(model.get('value'));
      const { sanitizer, language } = context;
      const { html, findings } = examine(value, dirty =>
        sanitizer.sanitize(dirty)
      );
      const isAllowed = this._allowed === value;
      this.model = Object.create(model, {
        get: {
          value: (name: string): unknown =>
            name === 'value' && !isAllowed ? html : model.get(name)
        }
      }) as DOMWidgetModel;
      try {
        super.update(options as never);
      } finally {
        this.model = model;
      }
      this.el.classList.add('jp-AgentBox-markup');
      this._remove?.();
      this._remove = null;
      const [worst] = findings;
      if (worst && !isAllowed) {
        this._remove = placeCard(this.el, language, {
          kind: describeFinding(worst, language.trans),
          source: value,
          isPartShown: true,
          isSandboxed: gate.wasSandboxed,
          isInWidget: true,
          onAllow: () => {
            this._allowed = value;
            this.update();
            return Promise.resolve();
          }
        });
      }
    }

    override remove(): void {
      this._remove?.();
      super.remove();
    }

    // Fields would be set after the constructor of the base, which renders nothing, and before `render`.
    private _allowed: string | null = null;
    private _remove: (() => void) | null = null;
  } as unknown as ViewClass;
}

function isWidgetClass(value: unknown): boolean {
  const prototype: unknown =
    typeof value === 'function' ? value.prototype : null;
  return prototype instanceof WidgetModel || prototype instanceof WidgetView;
}

/** The ids of the models to which a state refers. */
export function references(value: unknown): string[] {
  if (typeof value === 'string') {
    const found = REFERENCE.exec(value);
    return found?.[1] ? [found[1]] : [];
  }
  if (Array.isArray(value)) {
    return value.flatMap(references);
  }
  return isPlain(value) ? Object.values(value).flatMap(references) : [];
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.getPrototypeOf(value) === Object.prototype
  );
}
