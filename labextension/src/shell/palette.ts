/**
 * Where the commands stand in the command palette.
 */

/** The category of all commands: somebody who knows the extension by its name finds them all. */
export const PALETTE_CATEGORY = 'AgentBox';
