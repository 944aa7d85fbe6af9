/**
 * Finds arguments that contain a value and its replacement.
 */
import { isObject, namesOf, setMember, stringify } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { isSecretName } from '../text/secretNames';

/** A text, or a JSON value as text, and its replacement. */
export interface IReplacement {
  /** The names of the old and the new value. */
  old: string;
  name: string;
  before: string;
  after: string;
}

/** The maximum total number of characters of two texts that are compared. */
const MAX_LENGTH = 100_000;

/** Words that the two names begin with, or consist of. */
const PAIRS = [
  ['old', 'new'],
  ['before', 'after'],
  ['original', 'replacement']
] as const;

/** The entry of a project's server that was trusted; it is compared with the one that asks for trust. */
export const TRUSTED = 'trusted_before';

/** Replaces values whose names look like those of secrets. */
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

/** The text of a value: itself, or JSON with one line per member; `null` for what has no lines. */
function comparable(value: JsonValue): string | null {
  if (typeof value === 'string') {
    return value;
  }
  return isObject(value) || Array.isArray(value)
    ? stringify(masked(value), 2)
    : null;
}

/** The value without what its names mark as secret. */
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

/** The name of an argument's replacement; `null` if the argument's name suggests none. */
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
