/**
 * Creates a notebook that tries the tools of the bundled shop. Nothing in it runs by itself.
 */
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { KernelSpec } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { inDirectory } from '../ui/commandArguments';
import { approvalIcon } from '../ui/icons';
import { newNotebook } from './newNotebook';

/** The id of the command. */
export const NEW_TOOL_DEMO = 'jupyter-agentbox:new-tool-demo';

/** What the command needs. */
export interface IToolDemoOptions {
  kernelspecs: Pick<KernelSpec.IManager, 'ready' | 'specs'>;
  trans: TranslationBundle;
}

/** Add the command. Its argument `cwd` is the notebook's directory; by default, it is the file browser's. */
export function addToolDemoCommand(
  registry: CommandRegistry,
  { kernelspecs, trans }: IToolDemoOptions
): void {
  registry.addCommand(NEW_TOOL_DEMO, {
    ...inDirectory(trans),
    label: ({ isLauncher }) =>
      isLauncher ? trans.__('Tool Demo') : trans.__('New Tool Demo'),
    caption: trans.__(
      'Create a notebook that calls the tools of a made-up shop, and asks you first'
    ),
    icon: ({ isPalette }) => (isPalette ? undefined : approvalIcon),
    execute: ({ cwd }) =>
      newNotebook({ registry, kernelspecs, cwd }, panel => {
        fill(panel, trans);
      })
  });
}

/** Write the cells, unless somebody was faster. */
function fill({ content }: NotebookPanel, trans: TranslationBundle): void {
  const notebook = content.model?.sharedModel;
  const isNew = notebook?.cells.every(cell => cell.getSource() === '') ?? false;
  if (!notebook || !isNew) {
    return;
  }
  notebook.transact(() => {
    notebook.deleteCellRange(0, notebook.cells.length);
    notebook.insertCells(0, cellsOf(trans));
  });
  content.activeCellIndex = 1;
}

/** The cells of the demo. */
export function cellsOf(
  trans: TranslationBundle
): { cell_type: 'code' | 'markdown'; source: string }[] {
  const text = (
    ...paragraphs: string[]
  ): ReturnType<typeof cellsOf>[number] => ({
    cell_type: 'markdown',
    source: paragraphs.join('\n\n')
  });
  const code = (source: string): ReturnType<typeof cellsOf>[number] => ({
    cell_type: 'code',
    source
  });
  return [
    text(
      trans.__('# Tool demo'),
      trans.__(
        'This notebook calls the tools of a made-up shop that comes with AgentBox. Run the cells one by one: each call shows a card under its cell, and runs only if you allow it.'
      ),
      trans.__(
        'If `tools` below has no `shop`, add it: in the AgentBox panel, choose *Servers*, then *Add server…*, with the name `shop`, the program `python` and, each in a line of its own, the arguments `-m` and `jupyter_agentbox.demo.shop`. Then run the cell again.'
      )
    ),
    code('from jupyter_agentbox import tools\n\ntools.reload()\ntools'),
    text(
      trans.__(
        'This tool only reads. What it returns is a Python value: a list of products.'
      )
    ),
    code('products = tools.shop.list_products()\nproducts'),
    text(
      trans.__(
        'This one changes the stock. Try *Edit* on its card: the arguments that you see there are those that run.'
      )
    ),
    code('tools.shop.restock(product_id=3, quantity=25)')
  ];
}
