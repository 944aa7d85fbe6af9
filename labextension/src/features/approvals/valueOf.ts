/**
 * Finds in the code of a cell where the value of a tool call is after the cell has run.
 */

/** `name = …`, with a type or without, at the beginning of a line. */
const ASSIGNMENT = /^([A-Za-z_]\w*)\s*(?::[^=]+)?=(?!=)/;
/** A line that continues the one before it. */
const CONTINUED = /^[\s)\]}]/;

/**
 * The variable that has the value, or a part of it: the one it is assigned to, or `_` if the cell ends with the call;
 * `null` if the code does something else with it, or calls the tool more than once.
 */
export function valueOf(source: string, tool: string): string | null {
  const lines = source.split('\n').filter(line => line.trim() !== '');
  const call = `[\\w.]+\\.${tool.replace(/\W/g, '_')}(?:\\.aio)?\\(`;
  if (source.match(new RegExp(call, 'g'))?.length !== 1) {
    return null;
  }
  const at = lines.findIndex(one => new RegExp(call).test(one));
  const line = lines[at] ?? '';
  const assigned = ASSIGNMENT.exec(line);
  const rest = assigned ? line.slice(assigned[0].length).trimStart() : line;
  if (!new RegExp(`^(?:await\\s+)?${call}`).test(rest)) {
    return null;
  }
  const isLast = lines.slice(at + 1).every(one => CONTINUED.test(one));
  const isShown = isLast && !lines[lines.length - 1].trimEnd().endsWith(';');
  return assigned?.[1] ?? (isShown ? '_' : null);
}
