/**
 * Cells that ask an agent.
 */

/** As IPython reads a cell: it takes out empty lines before the magic, and no other. */
const AGENT_CELL = /^\s*%%agent(?!\S)/;

/** Whether a cell with this source asks an agent. */
export function isAgentCell(source: string): boolean {
  return AGENT_CELL.test(source);
}
