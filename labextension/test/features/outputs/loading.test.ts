import { PageConfig } from '@jupyterlab/coreutils';
import {
  RenderMimeRegistry,
  standardRendererFactories
} from '@jupyterlab/rendermime';
import { ErrorWidgetView } from '@jupyter-widgets/base';
import { Signal } from '@lumino/signaling';

import {
  guardOutputs,
  loadPatiently
} from '../../../src/features/outputs/loading';
import { KernelLevels } from '../../../src/features/outputs/levels';
import { gateOf } from '../../../src/features/outputs/registry';
import { TESTED } from '../../../src/features/outputs/upstream';
import { language } from '../../examples';
import { Notebook, Server } from '../../sessions';

/** How often the guard was loaded. */
let mockLoaded = 0;

/** Whether the guard cannot be loaded. */
let mockIsMissing = false;

jest.mock('../../../src/features/outputs/installation', () => {
  if (mockIsMissing) {
    throw new Error('no such file');
  }
  mockLoaded += 1;
  return jest.requireActual('../../../src/features/outputs/installation');
});

const NAMES = [
  'createRenderer',
  'preferredMimeType',
  'clone',
  'addFactory',
  'getFactory',
  'sanitizer'
] as const;

/** Those of them that are changed while outputs are held back. */
const HELD = ['createRenderer', 'preferredMimeType', 'clone', 'getFactory'];

/** A page, without notebooks if a test adds none, in which kernelspecs can be added. */
class Page {
  constructor(option?: string) {
    if (option !== undefined) {
      PageConfig.setOption('agentboxSandboxedKernels', option);
    }
    this._before = this._parts();
  }

  async activate(): Promise<void> {
    await guardOutputs(
      {
        version: `${TESTED.jupyterlab}.0`,
        rendermime: this.rendermime,
        notebooks: this.notebooks as never,
        consoles: null,
        levels: new KernelLevels({} as never, { specs: null }),
        serverSettings: this._settings as never,
        sanitizer: this.rendermime.sanitizer,
        language
      },
      this._kernelspecs as never
    );
  }

  /** Add the kernelspec of a sandboxed kernel. */
  addSpec(): void {
    const metadata = {
      kernel_provisioner: { provisioner_name: 'agentbox-sandbox' }
    };
    this._kernelspecs.specs = { kernelspecs: { boxed: { metadata } } };
    this._kernelspecs.specsChanged.emit(undefined);
  }

  /** Which parts of the page are no longer what they were. */
  get changed(): string[] {
    const now = this._parts();
    return Object.keys(now).filter(name => now[name] !== this._before[name]);
  }

  private _parts(): Record<string, unknown> {
    return {
      ...Object.fromEntries(NAMES.map(name => [name, this.rendermime[name]])),
      serializer: this._settings.serializer,
      error: ErrorWidgetView.prototype.render
    };
  }

  notebooks: object | null = null;
  readonly rendermime = new RenderMimeRegistry({
    initialFactories: standardRendererFactories
  });
  private readonly _settings = {
    serializer: { serialize: () => '', deserialize: () => ({}) }
  };
  private readonly _kernelspecs = {
    specs: null as object | null,
    specsChanged: new Signal<object, unknown>({})
  };
  private readonly _before: Record<string, unknown>;
}

/** Let a module be loaded, and what waits for it happen. */
async function loading(): Promise<void> {
  await new Promise(resolve => {
    window.setTimeout(resolve);
  });
}

test('a page of a server without sandboxed kernels stays as it is until there is one, and loads no guard', async () => {
  const page = new Page('false');
  await page.activate();
  await loading();
  expect(page.changed).toEqual([]);
  expect(mockLoaded).toBe(0);

  page.addSpec();
  expect(page.changed).toEqual(HELD);
  await loading();
  expect(page.changed).toEqual([...NAMES, 'serializer', 'error']);
  expect(mockLoaded).toBe(1);
});

test.each(['true', undefined])(
  'a page of any other server is guarded before the application opens anything: %s',
  async option => {
    PageConfig.setOption('agentboxSandboxedKernels', '');
    const page = new Page(option);
    const active = page.activate();
    expect(page.changed).toEqual(HELD);
    await active;
    expect(page.changed).toEqual([...NAMES, 'serializer', 'error']);
  }
);

test('a clone that was made of the registry of a notebook while held belongs to the notebook', async () => {
  const page = new Page('true');
  const rendermime = page.rendermime.clone();
  const panel = {
    sessionContext: new Notebook(new Server()).context,
    content: { rendermime, model: null, modelChanged: new Signal({}) }
  };
  page.notebooks = {
    forEach: (callback: (open: object) => void) => {
      callback(panel);
    },
    widgetAdded: new Signal({})
  };
  const active = page.activate();
  const clone = rendermime.clone();
  const cloneOfClone = clone.clone();
  const other = page.rendermime.clone();
  await active;

  expect(gateOf(clone)?.isBound).toBe(true);
  expect(gateOf(cloneOfClone)?.isBound).toBe(true);
  expect(gateOf(other)?.isBound).toBe(false);
});

test('what cannot be loaded is tried again, less and less often, and reported once', async () => {
  jest.useFakeTimers();
  let seconds = 0;
  const times: number[] = [];
  const failures: unknown[] = [];
  const error = new Error('no network');
  const loaded = loadPatiently(
    () => {
      times.push(seconds);
      return times.length < 9 ? Promise.reject(error) : Promise.resolve('it');
    },
    failure => failures.push(failure)
  );
  for (seconds = 1; seconds <= 300; seconds++) {
    await jest.advanceTimersByTimeAsync(1000);
  }

  jest.useRealTimers();

  expect(await loaded).toBe('it');
  expect(times).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183]);
  expect(failures).toEqual([error]);
});

test('an application whose guard cannot be loaded appears after some seconds, and its outputs stay held back', async () => {
  PageConfig.setOption('agentboxSandboxedKernels', 'true');
  jest.spyOn(console, 'error').mockImplementation();
  jest.spyOn(console, 'warn').mockImplementation();
  jest.resetModules();
  mockIsMissing = true;
  jest.useFakeTimers();
  const page = new Page();
  let isActive = false;
  void page.activate().then(() => {
    isActive = true;
  });
  await jest.advanceTimersByTimeAsync(9000);
  expect(isActive).toBe(false);
  await jest.advanceTimersByTimeAsync(2000);
  jest.useRealTimers();

  expect(isActive).toBe(true);
  expect(page.changed).toEqual(HELD);
  expect(document.body.textContent).toContain('no outputs are shown');
});
