import './browser';

import { MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { Kernel } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { Gate, SessionGate } from '../src/outputs/gate';
import type { GateContext } from '../src/outputs/gate';
import { guardRenderer } from '../src/outputs/guard';
import type { KernelLevels } from '../src/outputs/levels';

const SCRIPT = 'application/javascript';

/** Renders by showing what it was given, as one that runs it would. */
class Renderer extends Widget implements IRenderMime.IRenderer {
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.node.textContent = `${model.trusted ? 'ran' : 'showed'} ${String(model.data[SCRIPT])}`;
  }
}

/** What the debugger does with a variable: a model that is no output. */
async function shown(trusted: boolean): Promise<string> {
  const trans = nullTranslator.load('jupyter-agentbox');
  const renderer = guardRenderer(new Renderer(), SCRIPT, new Gate(), trans);
  await renderer.renderModel(
    new MimeModel({ data: { [SCRIPT]: 'code' }, trusted })
  );
  return renderer.node.textContent ?? '';
}

async function openNotebook(level: 'plain' | 'sandboxed'): Promise<void> {
  const kernel = { isDisposed: false } as Kernel.IKernelConnection;
  Object.assign(kernel, { anyMessage: new Signal(kernel) });
  const context = { isReady: true, ready: Promise.resolve() };
  Object.assign(context, {
    session: { kernel },
    kernelChanged: new Signal(context)
  });
  const levels = { ask: () => Promise.resolve(level) };
  const gate = new Gate();
  gate.bind(
    new SessionGate(context as GateContext, levels as unknown as KernelLevels)
  );
  await gate.settled();
}

test('what is no output is shown as ever while no kernel of the page was sandboxed', async () => {
  await openNotebook('plain');

  expect(await shown(true)).toBe('ran code');
});

test('what is trusted without a person does not run where a kernel of the page was sandboxed', async () => {
  await openNotebook('sandboxed');

  expect(await shown(true)).not.toContain('ran code');
  expect(await shown(false)).toBe('showed code');
});
