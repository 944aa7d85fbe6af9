/**
 * Arguments that carry a text and what is to stand in its place.
 */
import { namesOf } from '../../api/json';
import type { IJsonObject } from '../../api/json';
import { isSecretName } from '../text/secretNames';

/** A text, and what is to stand in its place. */
export interface IReplacement {
  /** The name of the new text. */
  name: string;
  before: string;
  after: string;
}

/** Characters that two texts may have together to be compared. */
const MAX_LENGTH = 100_000;

/** Words that begin, or are, the names of the two. */
const PAIRS = [
  ['old', 'new'],
  ['before', 'after'],
  ['original', 'replacement']
] as const;

/** The pairs among arguments, such as `old_text` and `new_text`. */
export function replacements(values: IJsonObject): IReplacement[] {
  return namesOf(values).flatMap(name => {
    const other = counterpart(name);
    const before = values[name];
    const after =
      other !== null && Object.hasOwn(values, other) ? values[other] : null;
    const isPair =
      typeof before === 'string' &&
      typeof after === 'string' &&
      before !== after &&
      before.length + after.length <= MAX_LENGTH &&
      !isSecretName(name);
    return other !== null && isPair ? [{ name: other, before, after }] : [];
  });
}

/** The name of what is to stand in the place of an argument; `null` if its name says nothing of the kind. */
function counterpart(name: string): string | null {
  for (const [old, replacement] of PAIRS) {
    const rest = name.slice(old.length);
    if (name.startsWith(old) && /^(?:$|[_A-Z-])/.test(rest)) {
      return replacement + rest;
    }
  }
  return null;
}
