/** What jsdom has not, and JupyterLab's components need when they are imported. Import this first. */
globalThis.DragEvent ??= class extends MouseEvent {} as typeof DragEvent;
window.matchMedia ??= media =>
  ({
    media,
    matches: false,
    addListener: jest.fn()
  }) as unknown as MediaQueryList;
