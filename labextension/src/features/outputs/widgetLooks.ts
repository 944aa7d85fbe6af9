/**
 * Prevents ipywidgets of a sandboxed kernel from looking like a part of the page, or covering one.
 */
import {
  DOMWidgetView,
  LayoutView,
  StyleView,
  WidgetView
} from '@jupyter-widgets/base';

import { mayBeClass, mayBeValue } from './looks';

type Constructor<T> = new (...parameters: never[]) => T;

const made = new WeakMap<object, unknown>();

/** The replacement for a class of the standard modules: the same class, or one that accepts only what is harmless. */
export function harmlessClass(found: unknown): unknown {
  const prototype: unknown =
    typeof found === 'function' ? found.prototype : null;
  if (!(prototype instanceof WidgetView)) {
    return found;
  }
  const known = made.get(prototype);
  if (known) {
    return known;
  }
  const View = derive(found as Constructor<WidgetView>);
  made.set(prototype, View);
  return View;
}

function derive(View: Constructor<WidgetView>): unknown {
  if (isA(View, DOMWidgetView)) {
    return withHarmlessClasses(View as unknown as typeof DOMWidgetView);
  }
  if (isA(View, LayoutView) || isA(View, StyleView)) {
    return withHarmlessValues(View as unknown as typeof LayoutView);
  }
  return View;
}

/** Whether a class equals another, or is derived from it. */
function isA(one: Constructor<WidgetView>, other: unknown): boolean {
  return (
    one === other || one.prototype instanceof (other as Constructor<WidgetView>)
  );
}

/** Classes that the kernel sets (`add_class`); those that the view sets itself belong to an element. */
function withHarmlessClasses(View: typeof DOMWidgetView): typeof DOMWidgetView {
  return class extends View {
    override update_classes(
      old: string[],
      names: string[],
      element?: HTMLElement
    ): void {
      if (element) {
        super.update_classes(old, names, element);
      } else {
        super.update_classes(harmless(old), harmless(names));
      }
    }
  };
}

function harmless(names: unknown): string[] {
  return Array.isArray(names)
    ? names.filter(
        (name): name is string => typeof name === 'string' && mayBeClass(name)
      )
    : [];
}

/** `layout` and `style`: a kernel may name any value. */
function withHarmlessValues(View: typeof LayoutView): typeof LayoutView {
  return class extends View {
    override handleChange(trait: string, value: unknown): void {
      const property = trait.replace(/_/g, '-');
      const isHarmless = value === null || mayBeValue(property, String(value));
      super.handleChange(trait, isHarmless ? value : null);
    }
  };
}
