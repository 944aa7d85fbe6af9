/**
 * A `ResizeObserver`, which jsdom has not: tests say when what is observed has another size.
 */
import { act } from '@testing-library/react';

class Sizes {
  constructor(private readonly _callback: ResizeObserverCallback) {
    all.push(this);
  }

  observe(target: Element): void {
    this._targets.add(target);
  }

  unobserve(target: Element): void {
    this._targets.delete(target);
  }

  disconnect(): void {
    this._targets.clear();
  }

  tell(): void {
    const entries = [...this._targets].map(target => ({ target }));
    if (entries.length > 0) {
      this._callback(entries as ResizeObserverEntry[], this);
    }
  }

  private readonly _targets = new Set<Element>();
}

let all: Sizes[] = [];

/** Give the page a `ResizeObserver`, until `removeSizes`. */
export function addSizes(): void {
  all = [];
  window.ResizeObserver = Sizes;
}

/** Take it away again. */
export function removeSizes(): void {
  Reflect.deleteProperty(window, 'ResizeObserver');
}

/** Tell all observers that what they observe may have another size. */
export function tellSizes(): void {
  act(() => {
    all.forEach(each => {
      each.tell();
    });
  });
}
