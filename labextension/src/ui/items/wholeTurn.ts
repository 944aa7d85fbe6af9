/**
 * Has a cell show all that a turn put out, so that the next request, and the answer, are where a person looks for them.
 */
import type { Cell, CodeCell } from '@jupyterlab/cells';
import type { Widget } from '@lumino/widgets';

/** A step has several outputs: with JupyterLab's 50, a later one would be behind "Show more outputs". */
const MAX_OUTPUTS = 2000;

/** Cells whose outputs stand in a box of limited height, which scrolls by itself, have this class. */
const SCROLLED_CLASS = 'jp-mod-outputsScrolled';

const CLASS_CHANGES = { attributes: true, attributeFilter: ['class'] };

const watched = new WeakSet<Widget>();

/** Have the cell that an item is in show all its outputs. */
export function showWholeTurn(item: Widget): void {
  for (let at = item.parent; at; at = at.parent) {
    if ('maxNumberOutputs' in at) {
      showMore(at as CodeCell['outputArea']);
    }
    if ('outputsScrolled' in at && !watched.has(at)) {
      watched.add(at);
      keepWhole(at as CodeCell);
    }
  }
}

function showMore(area: CodeCell['outputArea']): void {
  if (area.maxNumberOutputs < MAX_OUTPUTS) {
    area.maxNumberOutputs = MAX_OUTPUTS;
  }
}

/**
 * Notebook 7 puts more than 100 lines of outputs into a box. It sets the class only: what a person has chosen, which the
 * notebook keeps, is in `outputsScrolled`.
 */
function keepWhole(cell: Pick<CodeCell, 'outputsScrolled'> & Cell): void {
  const unbox = (): void => {
    // To remove a class that is not there would be a change, too.
    if (!cell.outputsScrolled && cell.hasClass(SCROLLED_CLASS)) {
      cell.removeClass(SCROLLED_CLASS);
    }
  };
  // It lives as long as the node.
  new MutationObserver(unbox).observe(cell.node, CLASS_CHANGES);
  unbox();
}
