/**
 * How the page hears that a person has answered at a card that is no more.
 */

/** The event that an output fires when an answer has taken its card away. */
export const CARD_LEFT = 'jp-AgentBox-cardLeft';

/** Tell the page that the card in an output was answered. */
export function fireCardLeft(output: HTMLElement): void {
  output.dispatchEvent(new CustomEvent(CARD_LEFT, { bubbles: true }));
}
