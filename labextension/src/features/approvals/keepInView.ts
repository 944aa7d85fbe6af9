/**
 * Keeps a cell in view after its requests were decided elsewhere.
 */

/** Milliseconds in which the cards under a cell that was decided give way to its output. */
const SETTLING = 3000;

/**
 * Scroll back to a cell if it leaves the view because what is under it shrinks, for a short time and only until the person
 * does something.
 */
export function keepInView(cell: HTMLElement, view: HTMLElement): void {
  const observer = new ResizeObserver(() => {
    const { top, bottom } = cell.getBoundingClientRect();
    const seen = view.getBoundingClientRect();
    if (bottom <= seen.top || top >= seen.bottom) {
      cell.scrollIntoView({ block: 'nearest' });
    }
  });
  const gestures = ['pointerdown', 'wheel', 'keydown'];
  const stop = (): void => {
    observer.disconnect();
    gestures.forEach(each => {
      window.removeEventListener(each, stop, true);
    });
  };
  gestures.forEach(each => {
    window.addEventListener(each, stop, { capture: true, passive: true });
  });
  window.setTimeout(stop, SETTLING);
  observer.observe(cell);
}
