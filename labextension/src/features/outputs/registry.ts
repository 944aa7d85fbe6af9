/**
 * Guards all renderers of a rendermime registry and of its clones by a gate.
 */
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';

import type { ILanguage } from '../../ui/text/language';
import type { Gate } from './gate';
import { guardRenderer } from './guard';
import { WIDGET_MIME_TYPE } from './kinds';
import { quietSanitizer } from './sanitizer';

/** What a registry needs besides its gate. */
export interface IRegistryContext {
  language: ILanguage;
  /** Is told of a registry's widget manager; `null` if it cannot be found. */
  onWidgetManager: (manager: object | null, gate: Gate) => void;
}

const gates = new WeakMap<IRenderMimeRegistry, Gate>();

/** The gate of a registry; `null` if the registry was created before the first one was guarded. */
export function gateOf(registry: IRenderMimeRegistry): Gate | null {
  return gates.get(registry) ?? null;
}

/**
 * Guard a registry. Its methods are replaced, not its factories: a renderer of a type that is not known yet, or that
 * another extension adds later, passes here as well.
 */
export function guardRegistry(
  registry: IRenderMimeRegistry,
  context: IRegistryContext,
  gate: Gate
): Gate {
  const known = gates.get(registry);
  if (known) {
    return known;
  }
  gates.set(registry, gate);
  const createRenderer = registry.createRenderer.bind(registry);
  const preferredMimeType = registry.preferredMimeType.bind(registry);
  const clone = registry.clone.bind(registry);
  const addFactory = registry.addFactory.bind(registry);
  const getFactory = registry.getFactory.bind(registry);
  const sanitizer = quietSanitizer(registry.sanitizer, gate);
  Object.defineProperty(registry, 'sanitizer', { value: sanitizer });

  registry.createRenderer = mimeType =>
    guardRenderer(createRenderer(mimeType), mimeType, gate, context.language);

  // With the gate closed prefer unsafe types, so that the blocked output's card is shown rather than a safe fallback.
  registry.preferredMimeType = (bundle, safe) =>
    preferredMimeType(bundle, gate.verdict === 'closed' ? 'any' : safe);

  registry.clone = options => {
    const made = clone(options);
    // A clone of a notebook's registry is the notebook's too.
    guardRegistry(made, context, gate.clone());
    return made;
  };

  // What a factory makes by itself passes the gate as well.
  registry.getFactory = mimeType => {
    const factory = getFactory(mimeType);
    if (!factory) {
      return factory;
    }
    const guarded = Object.create(factory) as IRenderMime.IRendererFactory;
    return Object.assign(guarded, {
      createRenderer: (options: IRenderMime.IRendererOptions) =>
        guardRenderer(
          factory.createRenderer(options),
          options.mimeType,
          gate,
          context.language
        )
    });
  };

  const guardManagers = (): void => {
    findManager(createRenderer(WIDGET_MIME_TYPE), manager => {
      context.onWidgetManager(manager, gate);
    });
  };
  registry.addFactory = (factory, rank) => {
    addFactory(factory, rank);
    if (factory.mimeTypes.includes(WIDGET_MIME_TYPE)) {
      guardManagers();
    }
  };
  if (getFactory(WIDGET_MIME_TYPE)) {
    guardManagers();
  }
  return gate;
}

/** Only the widget manager's renderer has a reference to it. */
function findManager(
  probe: ReturnType<IRenderMimeRegistry['createRenderer']>,
  found: (manager: object | null) => void
): void {
  const delegate: unknown = Reflect.get(probe, '_manager');
  const promise: unknown =
    typeof delegate === 'object' && delegate !== null
      ? Reflect.get(delegate, 'promise')
      : null;
  if (promise instanceof Promise) {
    void promise.then(manager => {
      found(manager as object);
    });
  } else {
    found(null);
  }
  probe.dispose();
}
