/**
 * The cards that this extension has rendered. A document or an output may show elements with their classes, too.
 */
const cards = new WeakSet<Element>();

/** Remember a card that was rendered. */
export function noteCard(card: Element): void {
  cards.add(card);
}

/** Whether this extension has rendered an element as a card. */
export function isRenderedCard(element: Element): boolean {
  return cards.has(element);
}
