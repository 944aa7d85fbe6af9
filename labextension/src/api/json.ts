/**
 * JSON that keeps every digit, and the order of names.
 *
 * `JSON.parse` rounds 12345678901234567890 to 12345678901234567000, makes 149.0 an integer, and moves names like "10" to
 * the front. A person who approves a call must see, and send back, what runs: a number that JavaScript would write in
 * another way stays text here, and an object remembers the order of its names.
 */

/** A number that JavaScript would write in another way. */
export class ExactNumber {
  constructor(readonly text: string) {}

  toString(): string {
    return this.text;
  }
}

/** A JSON object. */
export interface IJsonObject {
  [name: string]: JsonValue;
}

/** A JSON value. */
export type JsonValue =
  null | boolean | number | string | ExactNumber | JsonValue[] | IJsonObject;

/** The order of the names of objects whose order differs from JavaScript's. */
const orders = new WeakMap<IJsonObject, readonly string[]>();

/** A name that JavaScript moves before all others. */
const INDEX = /^(?:0|[1-9]\d*)$/;

/** The names of an object in their order. */
export function namesOf(object: IJsonObject): string[] {
  const names = Object.keys(object);
  const order = orders.get(object);
  if (!order) {
    return names;
  }
  const known = new Set(order);
  return [
    ...order.filter(name => Object.hasOwn(object, name)),
    ...names.filter(name => !known.has(name))
  ];
}

/** Set the order of an object's names; names that it lacks come last. */
export function setOrder(object: IJsonObject, order: readonly string[]): void {
  if (order.some(name => INDEX.test(name))) {
    orders.set(object, order);
  }
}

/** Set a member of an object: an own property even for a name like `__proto__`. */
export function setMember(
  object: IJsonObject,
  name: string,
  value: JsonValue
): void {
  Object.defineProperty(object, name, {
    value,
    configurable: true,
    enumerable: true,
    writable: true
  });
}

/** A text is not JSON; says at which position. */
export class JsonSyntaxError extends Error {
  constructor(
    readonly line: number,
    readonly column: number,
    readonly expected: string
  ) {
    super(`line ${line}, column ${column}: expected ${expected}`);
  }
}

/** Whether a JSON value is an object. */
export function isObject(value: unknown): value is IJsonObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof ExactNumber)
  );
}

/**
 * Parse a JSON text and keep every digit.
 *
 * @throws JsonSyntaxError if the text is not JSON.
 */
export function parse(text: string): JsonValue {
  return new Parser(text).parse();
}

/** Print a JSON value with the digits and the order with which it was parsed; omits what is `undefined`. */
export function stringify(value: JsonValue, indent = 0, level = 0): string {
  if (value instanceof ExactNumber) {
    return value.text;
  }
  if (value === null || typeof value !== 'object') {
    return JSON.stringify(value);
  }
  const parts = Array.isArray(value)
    ? value.map(item => stringify(item, indent, level + 1))
    : namesOf(value)
        .filter(name => value[name] !== undefined)
        .map(
          name =>
            JSON.stringify(name) +
            (indent ? ': ' : ':') +
            stringify(value[name], indent, level + 1)
        );
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  if (!indent || parts.length === 0) {
    return open + parts.join(',') + close;
  }
  const inner = '\n' + ' '.repeat(indent * (level + 1));
  const outer = '\n' + ' '.repeat(indent * level);
  return open + inner + parts.join(',' + inner) + outer + close;
}

/** Whether two JSON values are the same; the order of names does not matter. */
export function isEqual(a: JsonValue, b: JsonValue): boolean {
  return canonical(a) === canonical(b);
}

function canonical(value: JsonValue): string {
  if (Array.isArray(value)) {
    return '[' + value.map(canonical).join(',') + ']';
  }
  if (isObject(value)) {
    const names = Object.keys(value).sort();
    const parts = names.map(
      name => JSON.stringify(name) + ':' + canonical(value[name])
    );
    return '{' + parts.join(',') + '}';
  }
  return stringify(value);
}

function toNumber(text: string): number | ExactNumber {
  const number = Number(text);
  return String(number) === text ? number : new ExactNumber(text);
}

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
const WORDS: Record<string, boolean | null> = {
  true: true,
  false: false,
  null: null
};

class Parser {
  constructor(private readonly _text: string) {}

  parse(): JsonValue {
    const value = this._value();
    if (this._at < this._text.length) {
      this._fail('the end');
    }
    return value;
  }

  private _value(): JsonValue {
    this._match(SPACE);
    const next = this._text[this._at];
    let value: JsonValue;
    if (next === '{') {
      value = this._object();
    } else if (next === '[') {
      value = this._array();
    } else if (next === '"') {
      value = this._string();
    } else {
      value = this._scalar();
    }
    this._match(SPACE);
    return value;
  }

  private _object(): IJsonObject {
    const object: IJsonObject = {};
    const order = new Set<string>();
    this._at++;
    this._match(SPACE);
    if (this._take('}')) {
      return object;
    }
    for (;;) {
      this._match(SPACE);
      if (this._text[this._at] !== '"') {
        this._fail('a name in double quotes');
      }
      const name = this._string();
      this._match(SPACE);
      if (!this._take(':')) {
        this._fail('a colon');
      }
      setMember(object, name, this._value());
      order.add(name);
      if (this._take('}')) {
        setOrder(object, [...order]);
        return object;
      }
      if (!this._take(',')) {
        this._fail('a comma or a closing brace');
      }
    }
  }

  private _array(): JsonValue[] {
    const array: JsonValue[] = [];
    this._at++;
    this._match(SPACE);
    if (this._take(']')) {
      return array;
    }
    for (;;) {
      array.push(this._value());
      if (this._take(']')) {
        return array;
      }
      if (!this._take(',')) {
        this._fail('a comma or a closing bracket');
      }
    }
  }

  private _string(): string {
    const start = this._at;
    let end = start + 1;
    while (end < this._text.length && this._text[end] !== '"') {
      end += this._text[end] === '\\' ? 2 : 1;
    }
    const source = this._text.slice(start, end + 1);
    try {
      const value: string = JSON.parse(source);
      this._at = end + 1;
      return value;
    } catch {
      return this._fail('a string that ends on its line, with valid escapes');
    }
  }

  private _scalar(): JsonValue {
    const word = this._match(WORD);
    if (word) {
      return WORDS[word];
    }
    const number = this._match(NUMBER);
    return number ? toNumber(number) : this._fail('a value');
  }

  private _match(pattern: RegExp): string {
    pattern.lastIndex = this._at;
    const found = pattern.exec(this._text)?.[0] ?? '';
    this._at += found.length;
    return found;
  }

  private _take(character: string): boolean {
    const isNext = this._text[this._at] === character;
    this._at += isNext ? 1 : 0;
    return isNext;
  }

  private _fail(expected: string): never {
    const lines = this._text.slice(0, this._at).split('\n');
    throw new JsonSyntaxError(
      lines.length,
      lines[lines.length - 1].length + 1,
      expected
    );
  }

  private _at = 0;
}
