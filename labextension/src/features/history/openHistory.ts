/** The command that opens the page of all calls. */
export const OPEN_HISTORY = 'jupyter-agentbox:open-history';
