/**
 * Gestures as the browser marks a person's own, which a script cannot make: these go round the public interface of jsdom.
 */
import { act } from '@testing-library/react';

/** The object of jsdom that stands behind one of the DOM. */
function implementation(of: object): {
  isTrusted: boolean;
  _dispatch: (event: object) => void;
} {
  const symbol = Object.getOwnPropertySymbols(of).find(
    ({ description }) => description === 'impl'
  );
  return Reflect.get(of, symbol as symbol);
}

/** Dispatch an event at a node as if a person had made it. */
export function byPerson(node: Element, event: Event): void {
  const inner = implementation(event);
  inner.isTrusted = true;
  act(() => {
    implementation(node)._dispatch(inner);
  });
}
