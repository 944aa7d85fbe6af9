/**
 * Inserts a cell below the cell of an output.
 */
import type { INotebookTracker } from '@jupyterlab/notebook';

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
