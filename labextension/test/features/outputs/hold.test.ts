import { Sanitizer } from '@jupyterlab/apputils';
import {
  MimeModel,
  RenderedCommon,
  RenderMimeRegistry
} from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { Kernel } from '@jupyterlab/services';
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

test('only kernels that are known to be plain have comms while held', () => {
  const handled = (level: 'plain' | undefined): unknown[] => {
    const kernel = { id: 'k1', handleComms: true } as Kernel.IKernelConnection;
    const held = hold(registry(), level, kernel);
    const during = kernel.handleComms;
    held.release(block);
    return [during, kernel.handleComms];
  };
  expect(handled(undefined)).toEqual([false, true]);
  expect(handled('plain')).toEqual([true, true]);
});
