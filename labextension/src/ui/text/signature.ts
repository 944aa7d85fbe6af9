/**
 * A call in one line, as Python would write it: `restock(product_id=3, quantity=25)`.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import { ExactNumber, isObject, namesOf } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { localeOf } from './language';
import { isSecret, masked } from './secretValues';
import { visible } from './visibleText';

/** A line about a call, and whether it shows all that would run. */
export interface ISignature {
  text: string;
  /** Whether nothing was shortened, left out or masked. */
  isWhole: boolean;
}

/** Characters of a value that are shown. */
const MAX_VALUE = 48;

/** About the characters that say how long a text is: one that is only so much longer is shown whole. */
const NOTE = 20;

/** Characters of the arguments that are shown together. */
const MAX_ARGUMENTS = 120;

/** Characters of a name that are shown. */
const MAX_NAME = 40;

/** A name that Python would take for an argument. */
const IDENTIFIER = /^[\p{L}_][\p{L}\p{N}_]*$/u;

const CONSTANTS = new Map<JsonValue, string>([
  [null, 'None'],
  [true, 'True'],
  [false, 'False']
]);

/** The part of a shortened value that is its beginning; the rest is its end, where something may be hidden. */
const HEAD = 0.5;

/**
 * Write a call in one line. Of long values the beginning and the end are shown, of many arguments the first ones and the
 * last; values of secrets are masked, invisible characters escaped.
 */
export function signature(
  tool: string,
  values: IJsonObject,
  trans: TranslationBundle,
  length = MAX_ARGUMENTS
): ISignature {
  const names = namesOf(values);
  const last = names.length > 1 ? names.pop() : undefined;
  const end = last === undefined ? null : argument(last, values[last], trans);
  const parts: string[] = [];
  let isWhole = end?.isWhole ?? true;
  let left = length - (end ? end.text.length + 2 : 0);
  for (const name of names) {
    const shown = argument(name, values[name], trans);
    left -= shown.text.length + 2;
    if (left < 0 && parts.length > 0) {
      parts.push('…');
      isWhole = false;
      break;
    }
    parts.push(shown.text);
    isWhole &&= shown.isWhole;
  }
  if (end) {
    parts.push(end.text);
  }
  const name = shortened(tool, MAX_NAME);
  return {
    text: `${visible(name.text)}(${parts.join(', ')})`,
    isWhole: isWhole && name.isWhole
  };
}

/** One value as the signature writes it; the name tells whether it is masked. */
export function shortValue(
  name: string,
  value: JsonValue,
  trans: TranslationBundle,
  length = MAX_VALUE
): ISignature {
  const isWhole = isShort(name, value, length);
  if (isSecret(name, value)) {
    return { text: '••••', isWhole };
  }
  const head = Math.ceil(length * HEAD);
  const tail = length - head;
  if (typeof value === 'string') {
    const shown = String(masked('', value).value);
    if (shown.length <= length + NOTE) {
      return { text: literal(shown), isWhole };
    }
    const first = literal(shortened(shown, head).text);
    const count = trans._n(
      '%2 character',
      '%2 characters',
      value.length,
      value.length.toLocaleString(localeOf(trans))
    );
    // What says so is outside of the quotes, where the value cannot write.
    const text = `${first}… (${count}) …${literal(ending(shown, tail))}`;
    return { text, isWhole };
  }
  const { text, isWhole: isAll } = shortened(
    written(value, length * 2),
    length
  );
  return isAll
    ? { text: visible(text), isWhole }
    : {
        text: `${visible(shortened(text, head).text)} … ${visible(ending(writtenEnd(value, tail * 2), tail))}`,
        isWhole
      };
}

/** Whether all of a value is shown. */
export function isShort(
  name: string,
  value: JsonValue,
  length = MAX_VALUE
): boolean {
  if (isSecret(name, value)) {
    return false;
  }
  // Twice what is shown is enough to tell that there is more.
  return typeof value === 'string'
    ? value.length <= length + NOTE && masked('', value).hidden === 0
    : written(value, length * 2).length <= length && !hasSecret(value);
}

function argument(
  name: string,
  value: JsonValue,
  trans: TranslationBundle
): ISignature {
  const shown = shortValue(name, value, trans);
  const key = shortened(name, MAX_NAME);
  const written = IDENTIFIER.test(key.text)
    ? visible(key.text)
    : literal(key.text);
  return {
    text: `${written}${key.isWhole ? '' : '…'}=${shown.text}`,
    isWhole: key.isWhole && shown.isWhole
  };
}

/** A text in quotes: what it has of quotes, lines and invisible characters is escaped. */
function literal(text: string): string {
  return visible(JSON.stringify(text));
}

/** A value as Python would write it, as far as `length` characters need it. */
function written(value: JsonValue, length: number): string {
  const constant = CONSTANTS.get(value);
  if (constant !== undefined) {
    return constant;
  }
  if (typeof value === 'string') {
    return JSON.stringify(value.slice(0, length));
  }
  if (typeof value === 'number' || value instanceof ExactNumber) {
    return String(value);
  }
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  let text = open;
  for (const [index, [key, item]] of itemsOf(
    value as JsonValue[] | IJsonObject,
    length
  ).entries()) {
    if (text.length > length) {
      return text;
    }
    text += (index > 0 ? ', ' : '') + key + written(item, length);
  }
  return text + close;
}

/** The end of a value as Python would write it, of `length` characters or more. */
function writtenEnd(value: JsonValue, length: number): string {
  if (typeof value === 'string') {
    return JSON.stringify(ending(value, length));
  }
  if (
    typeof value !== 'object' ||
    value === null ||
    value instanceof ExactNumber
  ) {
    return written(value, length);
  }
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const items = itemsOf(value, length);
  let text = close;
  for (const [index, [key, item]] of [...items.entries()].reverse()) {
    if (text.length > length) {
      return text;
    }
    const comma = index < items.length - 1 ? ', ' : '';
    text = key + writtenEnd(item, length) + comma + text;
  }
  return open + text;
}

/** What is in a list or an object, with what stands before each; values of secrets are masked. */
function itemsOf(
  value: JsonValue[] | IJsonObject,
  length: number
): [string, JsonValue][] {
  return Array.isArray(value)
    ? value.map(item => ['', item])
    : namesOf(value).map(name => [
        `${JSON.stringify(name.slice(0, length))}: `,
        isSecret(name, value[name]) ? '••••' : value[name]
      ]);
}

/** Whether some part of a value is masked. */
function hasSecret(value: JsonValue): boolean {
  if (Array.isArray(value)) {
    return value.some(hasSecret);
  }
  return (
    isObject(value) &&
    Object.entries(value).some(
      ([name, item]) => isSecret(name, item) || hasSecret(item)
    )
  );
}

/** The first characters of a text; none is cut in half. */
function shortened(text: string, length: number): ISignature {
  const isWhole = text.length <= length;
  const characters = isWhole ? [] : Array.from(text.slice(0, length + 1));
  if (!isWhole && characters.join('').length > length) {
    characters.pop();
  }
  return { text: isWhole ? text : characters.join(''), isWhole };
}

/** The last characters of a text; none is cut in half. */
function ending(text: string, length: number): string {
  const end = text.slice(-length);
  return /^[\udc00-\udfff]/.test(end) && end.length < text.length
    ? end.slice(1)
    : end;
}
