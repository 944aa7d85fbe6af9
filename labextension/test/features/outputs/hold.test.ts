import { Sanitizer } from '@jupyterlab/apputils';
import {
  MimeModel,
  RenderedCommon,
  RenderMimeRegistry
} from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { KernelMessage } from '@jupyterlab/services';
import { KernelConnection } from '@jupyterlab/services/lib/kernel/default';
import {
  deserialize,
  serialize
} from '@jupyterlab/services/lib/kernel/serialize';
import { Signal } from '@lumino/signaling';

import { OutputsHold } from '../../../src/features/outputs/hold';
import { settle } from '../../sessions';

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
    safe: true,
    mimeTypes: [TYPE],
    createRenderer: options => new Renderer(options)
  });
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

function hold(
  rendermime: RenderMimeRegistry,
  level: 'plain' | undefined,
  kernel?: object
): OutputsHold {
  const sessionContext = {
    kernelChanged: new Signal({}),
    session: { kernel }
  };
  const panel = { sessionContext, content: { rendermime } };
  const notebooks = {
    forEach: (callback: (open: object) => void) => {
      callback(panel);
    },
    widgetAdded: new Signal({})
  };
  return new OutputsHold({
    rendermime,
    notebooks: (kernel ? notebooks : null) as never,
    consoles: null,
    levels: { known: () => level }
  });
}

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
    const held = hold(rendermime, undefined);
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
  const held = hold(rendermime, undefined);
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
  }

  /** Receive from the kernel that it opened a comm. */
  async open(id: string): Promise<void> {
    const message = KernelMessage.createMessage<KernelMessage.ICommOpenMsg>({
      msgType: 'comm_open',
      channel: 'iopub',
      session: 's1',
      content: { comm_id: id, target_name: 'target', data: {} }
    });
    sockets.at(-1)?.onmessage({ data: JSON.stringify(message) });
    await settle();
  }
}

test.each([
  [undefined, ['c2']],
  ['plain', ['c1', 'c2']]
] as const)(
  'only kernels that are known to be plain have comms while held, and all of them afterwards: %s',
  async (level, expected) => {
    jest.spyOn(console, 'debug').mockImplementation();
    const kernel = new Connection();
    const opened: string[] = [];
    const held = hold(registry(), level, kernel);
    const removed = (): void => undefined;
    kernel.registerCommTarget('target', removed);
    kernel.removeCommTarget('target', removed);
    kernel.registerCommTarget('target', ({ commId }) => {
      opened.push(commId);
    });
    await kernel.open('c1');
    held.release(block);
    await kernel.open('c2');
    kernel.dispose();

    expect(opened).toEqual(expected);
  }
);
