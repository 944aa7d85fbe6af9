import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { KernelWatch, watchWidgets } from '../../src/integrations/sessions';
import type { ISessionTrackers } from '../../src/integrations/sessions';

/** A notebook or a console, as far as its session goes. */
class Panel {
  constructor(id?: string) {
    this.connect(id);
  }

  connect(id?: string): void {
    const newValue = id ? ({ id } as Kernel.IKernelConnection) : null;
    this._kernel = newValue;
    this.kernelChanged.emit({ newValue });
  }

  get sessionContext(): ISessionContext {
    const { kernelChanged, _kernel: kernel } = this;
    return {
      kernelChanged,
      session: { kernel }
    } as unknown as ISessionContext;
  }

  readonly kernelChanged = new Signal<this, { newValue: unknown }>(this);
  private _kernel: Kernel.IKernelConnection | null = null;
}

class Tracker {
  constructor(...open: Panel[]) {
    this._panels = open;
  }

  add(panel: Panel): void {
    this._panels.push(panel);
    this.widgetAdded.emit(panel);
  }

  forEach(callback: (panel: Panel) => void): void {
    this._panels.forEach(callback);
  }

  readonly widgetAdded = new Signal<this, Panel>(this);
  private readonly _panels: Panel[];
}

function trackers(
  notebooks: Tracker | null,
  consoles: Tracker | null
): ISessionTrackers {
  return { notebooks, consoles } as unknown as ISessionTrackers;
}

test('what is open already is seen, and told from what comes', () => {
  const tracker = new Tracker(new Panel('k1'));
  const seen: [string | undefined, boolean][] = [];
  const watching = watchWidgets(tracker, ({ sessionContext }, wasOpen) =>
    seen.push([sessionContext.session?.kernel?.id, wasOpen])
  );
  tracker.add(new Panel('k2'));
  watching.dispose();
  tracker.add(new Panel('k3'));
  expect(seen).toEqual([
    ['k1', true],
    ['k2', false]
  ]);
});

test('all kernels of notebooks and consoles are seen, until the watch ends', () => {
  const notebook = new Panel();
  const notebooks = new Tracker(notebook);
  const consoles = new Tracker(new Panel('k1'));
  const seen: string[] = [];
  const watching = new KernelWatch(trackers(notebooks, consoles), ({ id }) =>
    seen.push(id)
  );
  notebook.connect('k2');
  const console = new Panel();
  consoles.add(console);
  console.connect('k3');
  console.connect();
  watching.dispose();
  console.connect('k4');
  notebooks.add(new Panel('k5'));
  expect(seen).toEqual(['k1', 'k2', 'k3']);
});

test('an application without notebooks or consoles has none', () => {
  const watching = new KernelWatch(trackers(null, null), () => undefined);
  expect(watching.isDisposed).toBe(false);
});
