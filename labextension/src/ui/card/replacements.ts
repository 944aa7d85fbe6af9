/**
 * Arguments that carry a value and what is to stand in its place.
 */
import { isObject, namesOf, setMember, stringify } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { isSecretName } from '../text/secretNames';

/** A text, or a JSON value as text, and what is to stand in its place. */
export interface IReplacement {
  /** The names of the old value and of the new one. */
  old: string;
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

/** The entry of a project's server that was trusted; it is compared with the one that asks for trust. */
export const TRUSTED = 'trusted_before';

/** Stands for the values of names that look like those of secrets. */
const MASK = '•••';

/** The pairs among arguments, such as `old_text` and `new_text`. */
export function replacements(values: IJsonObject): IReplacement[] {
  return namesOf(values).flatMap(old => {
    const name = counterpart(old);
    if (name === null || !Object.hasOwn(values, name) || isSecretName(old)) {
      return [];
    }
    const before = comparable(values[old]);
    const after = comparable(values[name]);
    const isPair =
      before !== null &&
      after !== null &&
      typeof values[old] === typeof values[name] &&
      before !== after &&
      before.length + after.length <= MAX_LENGTH;
    return isPair ? [{ old, name, before, after }] : [];
  });
}

/** The text of a value: itself, or JSON with a line for each member; `null` for what has no lines. */
function comparable(value: JsonValue): string | null {
  if (typeof value === 'string') {
    return value;
  }
  return isObject(value) || Array.isArray(value)
    ? stringify(masked(value), 2)
    : null;
}

/** The value without what its names say is secret. */
function masked(value: JsonValue): JsonValue {
  if (Array.isArray(value)) {
    return value.map(masked);
  }
  if (!isObject(value)) {
    return value;
  }
  const copy: IJsonObject = {};
  for (const name of namesOf(value)) {
    setMember(copy, name, isSecretName(name) ? MASK : masked(value[name]));
  }
  return copy;
}

/** The name of what is to stand in the place of an argument; `null` if its name says nothing of the kind. */
function counterpart(name: string): string | null {
  if (name === TRUSTED) {
    return 'configuration';
  }
  for (const [old, replacement] of PAIRS) {
    const rest = name.slice(old.length);
    if (name.startsWith(old) && /^(?:$|[_A-Z-])/.test(rest)) {
      return replacement + rest;
    }
  }
  return null;
}
