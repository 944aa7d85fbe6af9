import { Sanitizer } from '@jupyterlab/apputils';
import { CodeCellModel } from '@jupyterlab/cells';
import {
  MimeModel,
  RenderedCommon,
  RenderMimeRegistry,
  textRendererFactory
} from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { KernelMessage } from '@jupyterlab/services';
import { KernelConnection } from '@jupyterlab/services/lib/kernel/default';
import {
  deserialize,
  serialize
} from '@jupyterlab/services/lib/kernel/serialize';
import { Signal } from '@lumino/signaling';

import {
  Gate,
  PageGate,
  SessionGate,
  SessionGates
} from '../../../src/features/outputs/gate';
import { OutputsHold } from '../../../src/features/outputs/hold';
import { KernelLevels } from '../../../src/features/outputs/levels';
import { Server, settle } from '../../sessions';

const NO_SPECS = { specs: null };
const TYPE = 'text/x-script';

/** Renders by running what it is given. */
class Renderer extends RenderedCommon {
  async render(): Promise<void> {
    this.node.textContent = 'ran';
  }
}

function registry(): RenderMimeRegistry {
  const made = new RenderMimeRegistry();
  made.addFactory({
    safe: false,
    mimeTypes: [TYPE],
    createRenderer: options => new Renderer(options)
  });
  made.addFactory(textRendererFactory);
  return made;
}

const model = new MimeModel({ data: { [TYPE]: 'code' }, trusted: true });

/** A guard that lets nothing be rendered. */
function block(): (renderer: IRenderMime.IRenderer) => void {
  return renderer => {
    renderer.renderModel = async () => {
      renderer.node.textContent = 'blocked';
    };
  };
}

/** The socket of a kernel; a test says what comes through it. */
class Socket {
  constructor() {
    sockets.push(this);
  }

  send(): void {}

  close(): void {}

  readonly protocol = '';
  onmessage: (event: { data: string }) => void = () => undefined;
}

const sockets: Socket[] = [];
const connections: Connection[] = [];

/** A connection to a kernel, as JupyterLab makes it. */
class Connection extends KernelConnection {
  constructor() {
    super({
      model: { id: 'k1', name: 'k' },
      serverSettings: {
        wsUrl: 'ws://localhost/',
        WebSocket: Socket,
        serializer: { serialize, deserialize }
      } as never
    });
    connections.push(this);
  }

  /** Register a target, and return the ids of the comms that are opened with it, as they come. */
  listen(): string[] {
    const opened: string[] = [];
    this.registerCommTarget('target', ({ commId }) => {
      opened.push(commId);
    });
    return opened;
  }

  /** Receive from the kernel that it opened a comm. */
  async open(id: string): Promise<void> {
    const message = KernelMessage.createMessage<
      KernelMessage.ICommOpenMsg<'iopub'>
    >({
      msgType: 'comm_open',
      channel: 'iopub',
      session: 's1',
      content: { comm_id: id, target_name: 'target', data: {} }
    });
    sockets.at(-1)?.onmessage({ data: JSON.stringify(message) });
    await settle();
  }
}

/** A hold of a page with this notebook, if any. */
function hold(
  rendermime: RenderMimeRegistry,
  notebook: { panel: object; levels: KernelLevels } | null = null
): OutputsHold {
  const levels = notebook?.levels ?? new KernelLevels(new Server(), NO_SPECS);
  const notebooks = {
    forEach: (callback: (open: object) => void) => {
      callback(notebook?.panel ?? {});
    },
    widgetAdded: new Signal({})
  };
  return new OutputsHold({
    rendermime,
    notebooks: (notebook && notebooks) as never,
    consoles: null,
    levels,
    sessions: new SessionGates(levels)
  });
}

/** A notebook with a kernel and one cell. */
class Panel {
  constructor() {
    this.panel = {
      sessionContext: this.sessionContext,
      content: {
        rendermime: this.rendermime,
        modelChanged: new Signal({}),
        model: {
          cells: Object.assign([this.cell], { changed: new Signal({}) })
        }
      }
    };
  }

  readonly kernel = new Connection();
  readonly sessionContext = {
    ready: new Promise<void>(() => undefined),
    kernelChanged: new Signal({}),
    disposed: new Signal({}),
    session: { kernel: this.kernel }
  };
  readonly server = new Server();
  readonly levels = new KernelLevels(this.server, NO_SPECS);
  readonly rendermime = registry();
  readonly cell = new CodeCellModel();
  readonly panel: object;
}

beforeEach(() => {
  jest.spyOn(console, 'debug').mockImplementation();
});

afterEach(() => {
  connections.splice(0).forEach(connection => {
    connection.dispose();
  });
});

test.each([
  ['a registry', (made: RenderMimeRegistry) => made.createRenderer(TYPE)],
  [
    'a clone of it',
    (made: RenderMimeRegistry) => made.clone().createRenderer(TYPE)
  ],
  [
    'a factory of it',
    (made: RenderMimeRegistry) =>
      made.getFactory(TYPE)?.createRenderer({
        mimeType: TYPE,
        resolver: null,
        sanitizer: new Sanitizer(),
        linkHandler: null,
        latexTypesetter: null
      }) as IRenderMime.IRenderer
  ]
])(
  'a renderer of %s renders nothing while held, and then only what the guard lets it',
  async (_, make) => {
    const rendermime = registry();
    const held = hold(rendermime);
    const renderer = make(rendermime);
    const rendered = renderer.renderModel(model);
    await settle();
    expect(renderer.node.textContent).toBe('');

    held.release(block);
    await rendered;
    expect(renderer.node.textContent).toBe('blocked');
  }
);

test('what is made after the release, or was disposed before it, is left alone', async () => {
  const rendermime = registry();
  const held = hold(rendermime);
  const early = rendermime.createRenderer(TYPE);
  const rendered = early.renderModel(model);
  early.dispose();
  held.release(block);
  await rendered;
  const late = rendermime.createRenderer(TYPE);
  await late.renderModel(model);

  expect(early.node.textContent).toBe('');
  expect(late.node.textContent).toBe('ran');
});

test('of the models that a renderer gets while held, only the newest is rendered', async () => {
  const rendermime = registry();
  const held = hold(rendermime);
  const renderer = rendermime.createRenderer(TYPE);
  const older = new MimeModel({ data: { [TYPE]: 'older' } });
  const rendered: unknown[] = [];
  const both = [older, model].map(each => renderer.renderModel(each));
  held.release(() => guarded => {
    guarded.renderModel = async each => {
      rendered.push(each);
    };
  });
  await Promise.all(both);

  expect(rendered).toEqual([model]);
});

test.each([
  ['bubblewrap', TYPE],
  ['none', 'text/plain']
])(
  'what is to be blocked is not passed over while held: %s',
  async (level, expected) => {
    const panel = new Panel();
    const held = hold(registry(), panel);
    const bundle = { [TYPE]: 'code', 'text/plain': 'text' };
    const preferred = (): (string | undefined)[] =>
      [panel.rendermime, panel.rendermime.clone()].map(each =>
        each.preferredMimeType(bundle, 'ensure')
      );
    expect(preferred()).toEqual(['text/plain', 'text/plain']);
    panel.server.say('k1', level);
    await settle();
    expect(preferred()).toEqual([expected, expected]);

    held.release(block);
    expect(preferred()).toEqual(['text/plain', 'text/plain']);
  }
);

test.each([
  [undefined, ['c2']],
  ['bubblewrap', ['c2']],
  ['none', ['c1', 'c2']]
])(
  'only kernels that are known to be plain have comms while held, and all of them afterwards: %s',
  async (level, expected) => {
    const panel = new Panel();
    const { kernel } = panel;
    const held = hold(registry(), panel);
    const removed = (): void => undefined;
    kernel.registerCommTarget('target', removed);
    kernel.removeCommTarget('target', removed);
    const opened = kernel.listen();
    if (level) {
      panel.server.say('k1', level);
      await settle();
    }
    await kernel.open('c1');
    held.release(block);
    await kernel.open('c2');

    expect(opened).toEqual(expected);
  }
);

test.each([
  ['bubblewrap', []],
  ['none', ['c1', 'c2']]
])(
  'while widgets cannot be shown, the end of the hold gives no comms to a kernel that is not plain: %s',
  async (level, expected) => {
    const panel = new Panel();
    const { kernel } = panel;
    const held = hold(registry(), panel);
    const gate = new Gate(new PageGate());
    gate.bind(new SessionGate(panel.sessionContext as never, panel.levels));
    gate.refuseWidgets();
    const opened = kernel.listen();
    panel.server.say('k1', level);
    await settle();
    await kernel.open('c1');
    held.release(block);
    await kernel.open('c2');

    expect(opened).toEqual(expected);
  }
);

test.each([
  ['bubblewrap', false],
  ['none', true]
])(
  'no cell becomes trusted while held unless its kernel is known to be plain: %s',
  async (level, expected) => {
    const panel = new Panel();
    hold(registry(), panel);
    panel.cell.trusted = true;
    expect(panel.cell.trusted).toBe(false);

    panel.server.say('k1', level);
    await settle();
    expect(panel.cell.trusted).toBe(expected);
    panel.cell.trusted = true;
    expect(panel.cell.trusted).toBe(expected);
  }
);
