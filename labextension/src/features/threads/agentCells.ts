/**
 * Detects cells that ask an agent.
 */

/** Like IPython, which removes empty lines before the magic, and no others. */
const AGENT_CELL = /^\s*%%agent(?!\S)/;

/** Whether a cell with this source asks an agent. */
export function isAgentCell(source: string): boolean {
  return AGENT_CELL.test(source);
}
