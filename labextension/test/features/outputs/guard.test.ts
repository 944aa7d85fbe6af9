import { Sanitizer } from '@jupyterlab/apputils';
import {
  MimeModel,
  RenderedCommon,
  RenderedHTML
} from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';

import { Gate, PageGate } from '../../../src/features/outputs/gate';
import type { IGate } from '../../../src/features/outputs/gate';
import { guardRenderer } from '../../../src/features/outputs/guard';
import { Notebook, Server, settle } from '../../sessions';
import { ITEM_MIME_TYPE } from '../../../src/api/threads';
import { itemRendererFactory } from '../../../src/ui/items/ItemRenderer';
import { language } from '../../examples';

const SCRIPT = 'application/javascript';

const OPTIONS = {
  resolver: null,
  sanitizer: new Sanitizer(),
  linkHandler: null,
  latexTypesetter: null
};

/** Renders by showing what it was given, as one that runs it would. */
class Renderer extends RenderedCommon {
  async render(model: IRenderMime.IMimeModel): Promise<void> {
    this.runs += 1;
    this.node.textContent = `${model.trusted ? 'ran' : 'showed'} ${JSON.stringify(model.data)}`;
  }

  runs = 0;
}

function guarded(gate: IGate, mimeType = SCRIPT): Renderer {
  const renderer = new Renderer({ ...OPTIONS, mimeType });
  guardRenderer(renderer, mimeType, gate, language);
  return renderer;
}

function output(mimeType = SCRIPT, data = 'code'): IRenderMime.IMimeModel {
  const model = new MimeModel({ data: { [mimeType]: data }, trusted: true });
  return Object.assign(model, { executionCount: 1 });
}

/** What the debugger and a help panel have: a model that is no output. */
function other(trusted: boolean, mimeType = SCRIPT): IRenderMime.IMimeModel {
  return new MimeModel({ data: { [mimeType]: 'code' }, trusted });
}

/** A notebook whose kernel `k1` the server has said to have a level of isolation. */
async function connected(
  level: string
): Promise<{ server: Server; notebook: Notebook }> {
  const server = new Server();
  const notebook = new Notebook(server);
  server.say('k1', level);
  notebook.connect('k1');
  await settle();
  return { server, notebook };
}

test('a kernel that starts anew runs no output again', async () => {
  const { server, notebook } = await connected('none');
  const renderer = guarded(notebook.gate);
  await renderer.renderModel(output());

  notebook.connect('k1');
  await settle();

  expect(renderer.runs).toBe(1);
  expect(notebook.gate.verdict).toBe('open');
  expect(server.asked).toEqual(['k1']);
});

test('another plain kernel runs no output again, also while the server has not said what it is', async () => {
  const { server, notebook } = await connected('none');
  const renderer = guarded(notebook.gate);
  await renderer.renderModel(output());

  notebook.connect('k2');
  await settle();
  expect(renderer.node.textContent).toContain('ran');
  server.say('k2', 'none');
  await settle();

  expect(renderer.runs).toBe(1);
});

test('a sandboxed kernel in the place of a plain one ends what ran', async () => {
  const { server, notebook } = await connected('none');
  const renderer = guarded(notebook.gate);
  await renderer.renderModel(output());

  server.say('k2', 'landlock');
  notebook.connect('k2');
  await settle();

  expect(renderer.node.textContent).not.toContain('ran');
  expect(renderer.runs).toBe(1);
});

test('an output that came before the server had said waits, and runs once', async () => {
  const server = new Server();
  const notebook = new Notebook(server);
  notebook.connect('k1');
  const renderer = guarded(notebook.gate);
  await renderer.renderModel(output());
  expect(renderer.runs).toBe(0);

  server.say('k1', 'none');
  await settle();

  expect(renderer.runs).toBe(1);
  expect(renderer.node.textContent).toContain('ran');
});

test('a renderer that draws by itself draws nothing that it was not given', async () => {
  const { notebook } = await connected('landlock');
  const renderer = guarded(notebook.gate);

  await renderer.render(output());

  expect(renderer.runs).toBe(0);
});

test('what is no output is shown as ever where all kernels of the page are plain', async () => {
  const { notebook } = await connected('none');
  const renderer = guarded(new Gate(notebook.page));

  await renderer.renderModel(other(true));

  expect(renderer.node.textContent).toContain('ran');
});

test('what is trusted without a person does not run where a kernel of the page was sandboxed', async () => {
  const { notebook } = await connected('landlock');
  notebook.disposed.emit();
  const renderer = guarded(new Gate(notebook.page));

  await renderer.renderModel(other(true));
  expect(renderer.node.textContent).not.toContain('ran');
  await renderer.renderModel(other(false));
  expect(renderer.node.textContent).toContain('showed');
});

test('what is trusted without a person waits while it is not known what the kernels are', async () => {
  const server = new Server();
  const notebook = new Notebook(server);
  notebook.connect('k1');
  const renderer = guarded(new Gate(notebook.page));

  await renderer.renderModel(other(true));
  expect(renderer.runs).toBe(0);
  server.say('k1', 'none');
  await settle();

  expect(renderer.runs).toBe(1);
});

test('a Markdown cell that another extension renders is not blocked', async () => {
  const { notebook } = await connected('landlock');
  const renderer = guarded(notebook.gate, 'text/markdown');

  await renderer.renderModel(other(false, 'text/markdown'));
  expect(renderer.node.textContent).toContain('showed');
  await renderer.renderModel(output('text/markdown'));
  expect(renderer.node.textContent).not.toContain('ran');
});

test('markup of a sandboxed kernel is not like the page', async () => {
  const { notebook } = await connected('landlock');
  const renderer = new RenderedHTML({ ...OPTIONS, mimeType: 'text/html' });
  guardRenderer(renderer, 'text/html', notebook.gate, language);
  const html =
    '<div class="lm-DockPanel-overlay" style="position: relative; color: red">a</div>';

  await renderer.renderModel(output('text/html', html));

  const div = renderer.node.querySelector('div');
  expect(div?.className).toBe('');
  expect(div?.getAttribute('style')).toMatch(/^color:\s*red;?$/);
});

test('a page without sessions is open', () => {
  expect(new PageGate().verdict).toBe('open');
});

test('an item of an agent is shown by its own renderer, and by no other', async () => {
  const { notebook } = await connected('bubblewrap');
  const context = { ...language, nameOf: () => 'Ada' } as never;
  const { factory } = itemRendererFactory(context);
  const mimeType = ITEM_MIME_TYPE;
  const own = factory.createRenderer({ ...OPTIONS, mimeType });
  const trusted: boolean[] = [];
  own.renderModel = model => {
    trusted.push(model.trusted);
    return Promise.resolve();
  };
  guardRenderer(own, mimeType, notebook.gate, language);
  await own.renderModel(output(mimeType));
  expect(trusted).toEqual([false]);

  const foreign = guarded(notebook.gate, mimeType);
  await foreign.renderModel(output(mimeType));
  expect(foreign.runs).toBe(0);
});
