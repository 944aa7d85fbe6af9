/**
 * The ids of commands that several features use, and where all commands are listed.
 */

/** Opens the form for a rule made from a request, `{ requestId, effect }`. It writes nothing: agents can run commands. */
export const MAKE_RULE = 'jupyter-agentbox:make-rule';

/** Opens the page of all calls. */
export const OPEN_HISTORY = 'jupyter-agentbox:open-history';

/** The category of all commands in the palette: who searches for the extension's name, or for what it is about, finds them all. */
export const PALETTE_CATEGORY = 'AgentBox (MCP)';
