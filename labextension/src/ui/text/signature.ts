/**
 * A call in one line, as Python would write it: `restock(product_id=3, quantity=25)`.
 */
import { ExactNumber, isObject, namesOf } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import { isSecretName } from './secretNames';
import { visible } from './visibleText';

/** A line about a call, and whether it shows all that would run. */
export interface ISignature {
  text: string;
  /** Whether nothing was shortened, left out or masked. */
  isWhole: boolean;
}

/** Characters of a value that are shown. */
const MAX_VALUE = 40;

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

/** Write a call in one line. Long values are shortened, values of secrets masked, and invisible characters escaped. */
export function signature(
  tool: string,
  values: IJsonObject,
  length = MAX_ARGUMENTS
): ISignature {
  const parts: string[] = [];
  let isWhole = true;
  let left = length;
  for (const name of namesOf(values)) {
    const shown = argument(name, values[name]);
    left -= shown.text.length + 2;
    if (left < 0 && parts.length > 0) {
      parts.push('…');
      isWhole = false;
      break;
    }
    parts.push(shown.text);
    isWhole &&= shown.isWhole;
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
  length = MAX_VALUE
): ISignature {
  if (isSecretName(name) && hasText(value)) {
    return { text: '••••', isWhole: false };
  }
  if (typeof value === 'string') {
    const { text, isWhole } = shortened(value, length);
    return { text: literal(text) + (isWhole ? '' : '…'), isWhole };
  }
  // Twice what is shown is enough to tell that there is more.
  const { text, isWhole } = shortened(written(value, length * 2), length);
  return {
    text: visible(text) + (isWhole ? '' : '…'),
    isWhole: isWhole && !hasSecret(value)
  };
}

function argument(name: string, value: JsonValue): ISignature {
  const shown = shortValue(name, value);
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
  const isList = Array.isArray(value);
  const [open, close] = isList ? '[]' : '{}';
  const items: [string, JsonValue][] = isList
    ? value.map(item => ['', item])
    : namesOf(value as IJsonObject).map(name => [
        `${JSON.stringify(name.slice(0, length))}: `,
        isSecretName(name) && hasText((value as IJsonObject)[name])
          ? '••••'
          : (value as IJsonObject)[name]
      ]);
  let text = open;
  for (const [index, [key, item]] of items.entries()) {
    if (text.length > length) {
      return text;
    }
    text += (index > 0 ? ', ' : '') + key + written(item, length);
  }
  return text + close;
}

/** Whether some text is in a value: a number, like the most tokens of an answer, is no secret. */
function hasText(value: JsonValue): boolean {
  if (typeof value === 'object' && value !== null) {
    return (
      !(value instanceof ExactNumber) && Object.values(value).some(hasText)
    );
  }
  return typeof value === 'string' && value !== '';
}

/** Whether some part of a value is masked. */
function hasSecret(value: JsonValue): boolean {
  if (Array.isArray(value)) {
    return value.some(hasSecret);
  }
  return (
    isObject(value) &&
    Object.entries(value).some(
      ([name, item]) => (isSecretName(name) && hasText(item)) || hasSecret(item)
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
