/**
 * Reads the cell of an output, and inserts a cell below it.
 */
import type { INotebookTracker } from '@jupyterlab/notebook';

/** The code of the cell that contains a node; empty if there is none. */
export function sourceOf(
  notebooks: INotebookTracker | null,
  node: HTMLElement
): string {
  const panel = notebooks?.find(one => one.content.node.contains(node));
  const cell = panel?.content.widgets.find(one => one.node.contains(node));
  return cell?.model.sharedModel.getSource() ?? '';
}

/** Insert a code cell below the cell that contains a node, and make it the active cell. Nothing is run. */
export function insertBelow(
  notebooks: INotebookTracker | null,
  node: HTMLElement,
  source: string
): void {
  const notebook = notebooks?.find(panel =>
    panel.content.node.contains(node)
  )?.content;
  const cells = notebook?.widgets ?? [];
  const index = cells.findIndex(cell => cell.node.contains(node));
  if (notebook?.model && index >= 0) {
    notebook.model.sharedModel.insertCell(index + 1, {
      cell_type: 'code',
      source
    });
    notebook.activeCellIndex = index + 1;
    notebook.activate();
  }
}
