/**
 * Keeps the cell of a card from becoming the active cell of its notebook while a person decides.
 *
 * A notebook makes a cell the active one when a press or the focus in it bubbles up to the notebook, and takes the focus back to
 * the active cell on each key. A card is no part of its cell in that respect: after a decision Shift+Enter must run the cell where
 * the person was, and not the one that asked. The context menu is about the cell below the pointer, so its button gets through.
 */

const NOTEBOOK = '.jp-Notebook';
const EDIT_MODE = 'jp-mod-editMode';

/**
 * Keep what happens in an output from the notebook that shows it, if one does. The event ends at the output: React, which listens
 * there, hears of it, and nothing above it does unless it listens in the capture phase.
 */
export function keepFromNotebook(output: HTMLElement): void {
  output.addEventListener('mousedown', event => {
    if (event.button === 0) {
      keep(output, event);
    }
  });
  output.addEventListener('keydown', event => {
    keep(output, event);
  });
  output.addEventListener('focusin', event => {
    const notebook = keep(output, event);
    if (notebook?.classList.contains(EDIT_MODE)) {
      // The focus had left the notebook for nothing in particular. In edit mode the notebook would take it to the editor.
      const relatedTarget = event.target;
      notebook.dispatchEvent(new FocusEvent('focusout', { relatedTarget }));
    }
  });
}

/** Stop an event at the output; returns the notebook that would have heard of it. */
function keep(output: HTMLElement, event: Event): Element | null {
  const notebook = output.closest(NOTEBOOK);
  if (notebook) {
    event.stopPropagation();
  }
  return notebook;
}
