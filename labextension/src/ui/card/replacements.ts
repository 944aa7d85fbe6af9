/**
 * Finds arguments that contain a value and its replacement.
 */
import { isObject, namesOf, stringify } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { isSecretName } from '../text/secretNames';
import { masked } from '../text/secretValues';

/** A text, or a JSON value as text, and its replacement. */
export interface IReplacement extends ITexts {
  /** The names of the old and the new value. */
  old: string;
  name: string;
  /** Both with the secrets that are masked in them. */
  whole: ITexts;
  /** The number of characters of these secrets. */
  hidden: number;
}

interface ITexts {
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

/** The pairs among arguments, such as `old_text` and `new_text`. */
export function replacements(values: IJsonObject): IReplacement[] {
  return namesOf(values).flatMap(old => {
    const name = counterpart(old);
    if (name === null || !Object.hasOwn(values, name) || isSecretName(old)) {
      return [];
    }
    const [first, second] = [
      masked(old, values[old]),
      masked(name, values[name])
    ];
    const before = comparable(first.value);
    const after = comparable(second.value);
    const isPair =
      before !== null &&
      after !== null &&
      typeof values[old] === typeof values[name] &&
      before !== after &&
      before.length + after.length <= MAX_LENGTH;
    if (!isPair) {
      return [];
    }
    const whole = {
      before: comparable(values[old]) ?? '',
      after: comparable(values[name]) ?? ''
    };
    const hidden = first.hidden + second.hidden;
    return [{ old, name, before, after, whole, hidden }];
  });
}

/** The text of a value: itself, or JSON with one line per member; `null` for what has no lines. */
function comparable(value: JsonValue): string | null {
  if (typeof value === 'string') {
    return value;
  }
  return isObject(value) || Array.isArray(value) ? stringify(value, 2) : null;
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
