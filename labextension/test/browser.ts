/** What jsdom has not, and JupyterLab's components need when they are imported: jest runs this before each test file. */
globalThis.DragEvent ??= class extends MouseEvent {} as typeof DragEvent;
window.matchMedia ??= media =>
  ({
    media,
    matches: false,
    addListener: () => undefined,
    removeListener: () => undefined
  }) as unknown as MediaQueryList;
Element.prototype.scrollIntoView ??= () => undefined;
window.requestIdleCallback ??= callback => window.setTimeout(callback);
// The ids in tests need no escapes.
globalThis.CSS ??= { escape: (text: string) => text } as typeof CSS;
// JupyterLab warns of a missing one in each test file that imports it.
if (!('clipboard' in navigator)) {
  Object.defineProperty(navigator, 'clipboard', {
    value: { writeText: () => Promise.resolve() },
    configurable: true
  });
}
