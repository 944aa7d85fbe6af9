/**
 * Makes a cell show all outputs of a turn, so that the next request and the answer are where a person looks for them.
 */
import type { Cell, CodeCell } from '@jupyterlab/cells';
import type { Widget } from '@lumino/widgets';

/** How many outputs a cell shows. Each step has several, and JupyterLab hides those after the 50th behind a button. */
const MAX_OUTPUTS = 2000;

/** The class of cells whose outputs are in a scrolling box of limited height. */
const SCROLLED_CLASS = 'jp-mod-outputsScrolled';

const CLASS_CHANGES = { attributes: true, attributeFilter: ['class'] };

const watched = new WeakSet<Widget>();

/** Make the cell that contains an item show all its outputs. */
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
    try {
      area.maxNumberOutputs = MAX_OUTPUTS;
    } catch (error) {
      // JupyterLab sets the limit, and then fails to remove the button "Show more outputs" if there is none.
      if (area.maxNumberOutputs !== MAX_OUTPUTS) {
        throw error;
      }
    }
  }
}

/**
 * Notebook 7 puts outputs of more than 100 lines into a scrolling box by adding the class. A person's own choice, which is
 * saved with the notebook, is in `outputsScrolled` instead.
 */
function keepWhole(cell: Pick<CodeCell, 'outputsScrolled'> & Cell): void {
  const unbox = (): void => {
    // Removing a class that is not there would count as a change, too.
    if (!cell.outputsScrolled && cell.hasClass(SCROLLED_CLASS)) {
      cell.removeClass(SCROLLED_CLASS);
    }
  };
  // The observer lives as long as the node.
  new MutationObserver(unbox).observe(cell.node, CLASS_CHANGES);
  unbox();
}
