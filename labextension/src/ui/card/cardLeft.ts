/**
 * Notifies the page that a person has answered at a card that is gone.
 */

/** The event that an output fires when an answer has removed its card. */
export const CARD_LEFT = 'jp-AgentBox-cardLeft';

/** Tell the page that the card in an output was answered. */
export function fireCardLeft(output: HTMLElement): void {
  output.dispatchEvent(new CustomEvent(CARD_LEFT, { bubbles: true }));
}
