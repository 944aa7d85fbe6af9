/**
 * The JSON text of all rules, and where in it what the server refuses is.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import { RequestError } from '../../api/errors';
import { isObject, parse } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { syntaxMessage } from '../../ui/form/draft';
import { messageOf } from '../../ui/text/messages';
import { label } from '../../ui/text/visibleText';

/** The number of problems that are told. */
const MOST_PROBLEMS = 5;

/** The rules in a JSON text. Throws with what is wrong, and where, if there are none. */
export function rulesOf(text: string, trans: TranslationBundle): IJsonObject[] {
  let value: JsonValue;
  try {
    value = parse(text);
  } catch (error) {
    throw new Error(syntaxMessage(error, trans));
  }
  if (!Array.isArray(value) || !value.every(isObject)) {
    throw new Error(
      trans.__(
        'This is not a JSON list of rules such as %1.',
        '[{"effect": "ask", "server": "*", "tool": "*"}]'
      )
    );
  }
  return value as IJsonObject[];
}

/** Why the server refuses the rules in a text: a line for each problem, with the rule and its line in the text. */
export function refusalText(
  error: unknown,
  text: string,
  trans: TranslationBundle
): string {
  const problems = error instanceof RequestError ? error.problems : [];
  const starts = linesOfRules(text);
  const told = problems.slice(0, MOST_PROBLEMS).map(({ rule, message }) => {
    const line = rule === undefined ? undefined : starts.at(rule - 1);
    const words = label(message, 400);
    return line === undefined
      ? words
      : trans.__('Rule %1, line %2: %3', rule, line, words);
  });
  const more = problems.length - told.length;
  return told.length === 0
    ? messageOf(error)
    : [
        ...told,
        ...(more > 0
          ? [trans._n('And %1 more problem.', 'And %1 more problems.', more)]
          : [])
      ].join('\n');
}

/** A string, or what begins or ends a list, an object or a line. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{}\n]/g;

/** The lines on which the objects in a JSON list begin, from 1. */
function linesOfRules(text: string): number[] {
  const lines: number[] = [];
  let depth = 0;
  let line = 1;
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '\n') {
      line += 1;
    } else if (token === '{' || token === '[') {
      if (depth === 1) {
        lines.push(line);
      }
      depth += 1;
    } else if (token === '}' || token === ']') {
      depth -= 1;
    }
  }
  return lines;
}
