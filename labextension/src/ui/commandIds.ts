/**
 * The ids of commands that several features use.
 */

/** Opens the form for a rule made from a request, `{ requestId, effect }`. It writes nothing: agents can run commands. */
export const MAKE_RULE = 'jupyter-agentbox:make-rule';
