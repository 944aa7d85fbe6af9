/**
 * Values as they are shown until a person asks for the secrets in them.
 */
import {
  isObject,
  namesOf,
  parse,
  setMember,
  setOrder,
  stringify
} from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { isSecretName } from './secretNames';
import { isJson } from './valueKind';

/** Stands for a secret. */
export const MASK = '••••••••';

/** A string of a JSON text, and what follows it if it is a name. */
const STRING = /("[^"\\]*(?:\\[^][^"\\]*)*")(\s*:\s*)?/g;

/** A string, a bracket, or a word and what separates it from the next. */
const TOKEN = /"[^"\\]*(?:\\[^][^"\\]*)*"|[{}[\]]|[^{}[\]"]+/g;

/** A value without its secrets. */
export interface IMasked {
  value: JsonValue;
  /** The number of characters of the secrets. */
  hidden: number;
}

/** Whether a value is probably a secret, by its name. */
export function isSecret(name: string, value: JsonValue): boolean {
  const isEmpty = value === null || value === '';
  // What is called tokens and is a number is how many an answer may have.
  const isCount = typeof value === 'number' && /tokens$/i.test(name);
  return (
    isSecretName(name) && !isEmpty && !isCount && typeof value !== 'boolean'
  );
}

/** The value of an argument without what its name, or a name in it, marks as secret. */
export function masked(name: string, value: JsonValue): IMasked {
  if (isSecret(name, value)) {
    return { value: MASK, hidden: lengthOf(value) };
  }
  if (typeof value === 'string') {
    return maskedText(value);
  }
  if (Array.isArray(value)) {
    const items = value.map(item => masked('', item));
    return { value: items.map(item => item.value), hidden: sum(items) };
  }
  return isObject(value) ? maskedObject(value) : { value, hidden: 0 };
}

function maskedObject(object: IJsonObject): IMasked {
  const names = namesOf(object).filter(name => object[name] !== undefined);
  const members = names.map(name => masked(name, object[name]));
  const copy: IJsonObject = {};
  names.forEach((name, index) => {
    setMember(copy, name, members[index].value);
  });
  setOrder(copy, names);
  return { value: copy, hidden: sum(members) };
}

/** A text that is JSON, without the secrets in it and otherwise as it is; any other text as it is. */
function maskedText(text: string): IMasked {
  if (!/^\s*[{[]/.test(text) || !isJson(text)) {
    return { value: text, hidden: 0 };
  }
  let [shown, hidden, end] = ['', 0, 0];
  for (const secret of secretsIn(text)) {
    shown += text.slice(end, secret.start) + JSON.stringify(MASK);
    hidden += secret.length;
    end = secret.end;
  }
  return { value: shown + text.slice(end), hidden };
}

/** Where the secrets of a JSON text are, and how many characters they have. */
function* secretsIn(
  text: string
): Generator<{ start: number; end: number; length: number }> {
  const strings = new RegExp(STRING);
  for (let at = strings.exec(text); at; at = strings.exec(text)) {
    const [all, string, colon] = at;
    const name = colon ? (JSON.parse(string) as string) : '';
    if (!isSecretName(name)) {
      continue;
    }
    const start = at.index + all.length;
    const written = valueAt(text, start);
    // What is in a list or an object makes no difference, and may be too deep to be read.
    const value = /^[{[]/.test(written) ? written : parse(written);
    if (isSecret(name, value)) {
      strings.lastIndex = start + written.length;
      const { lastIndex: end } = strings;
      yield { start, end, length: lengthOf(value) };
    }
  }
}

/** The value that begins at a place of a JSON text, as it is written there. */
function valueAt(text: string, start: number): string {
  const tokens = new RegExp(TOKEN);
  tokens.lastIndex = start;
  let depth = 0;
  do {
    const [token] = tokens.exec(text) ?? ['}'];
    if (/^[^{}[\]"]/.test(token) && depth === 0) {
      return /^[^\s,]*/.exec(token)?.[0] ?? '';
    }
    depth += /^[{[]/.test(token) ? 1 : /^[}\]]/.test(token) ? -1 : 0;
  } while (depth > 0);
  return text.slice(start, tokens.lastIndex);
}

/** The number of characters that a value has where it is shown. */
function lengthOf(value: JsonValue): number {
  return (typeof value === 'string' ? value : stringify(value)).length;
}

function sum(parts: readonly IMasked[]): number {
  return parts.reduce((total, { hidden }) => total + hidden, 0);
}
