/**
 * Tells how much of a node is in view.
 */

/** The values of `overflow` with which a box cuts off what does not fit. */
const CUTTING = /auto|clip|hidden|scroll/;

/** The pixels of a node's height that are in the window, and in each box around it that cuts off what does not fit. */
export function visibleHeight(node: Element): number {
  let { top, bottom } = node.getBoundingClientRect();
  top = Math.max(top, 0);
  bottom = Math.min(bottom, window.innerHeight);
  let box = node.parentElement;
  // What the body cuts off is cut off by the window, whatever its own height.
  for (; box && box !== document.body; box = box.parentElement) {
    if (CUTTING.test(window.getComputedStyle(box).overflowY)) {
      const edges = box.getBoundingClientRect();
      top = Math.max(top, edges.top);
      bottom = Math.min(bottom, edges.bottom);
    }
  }
  return Math.max(0, bottom - top);
}
