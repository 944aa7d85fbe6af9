/**
 * What kind of text the value of an argument is: code of some language, JSON, a difference, an image, or plain text.
 *
 * The kind only colors a text. Whatever a name or a schema claims, the text is shown as it is; unknown is plain text.
 */
import { isObject } from '../../api/json';
import type { JsonValue } from '../../api/json';
import { imageOf } from './imageValue';
import type { IImageValue } from './imageValue';

export type ValueKind =
  | { kind: 'text' }
  | { kind: 'code'; mimeType: string }
  | { kind: 'image'; image: IImageValue };

/** Characters, lines, and characters in a line that are colored: an editor with more makes the page wait. */
const MAX_LENGTH = 20_000;
const MAX_LINES = 2000;
const MAX_LINE = 2000;

export const JSON_TYPE = 'application/json';
export const DIFF_TYPE = 'text/x-diff';
const PYTHON = 'text/x-python';
const SHELL = 'text/x-sh';
const SQL = 'text/x-sql';

/** Languages by the words that name them in a schema's `format`, in a media type or in the name of an argument. */
const LANGUAGES: Readonly<Partial<Record<string, string>>> = {
  python: PYTHON,
  python3: PYTHON,
  py: PYTHON,
  sql: SQL,
  javascript: 'text/javascript',
  js: 'text/javascript',
  typescript: 'application/typescript',
  ts: 'application/typescript',
  bash: SHELL,
  shell: SHELL,
  sh: SHELL,
  json: JSON_TYPE,
  diff: DIFF_TYPE,
  patch: DIFF_TYPE,
  html: 'text/html',
  css: 'text/css',
  xml: 'text/xml',
  yaml: 'text/x-yaml',
  yml: 'text/x-yaml',
  toml: 'text/x-toml',
  julia: 'text/x-julia',
  markdown: 'text/x-markdown'
};

/** Names that say that a value is code, and not of which language. */
const CODE_NAMES = ['code', 'script', 'source', 'snippet', 'program'];
const SHELL_NAMES = ['command', 'cmd'];
const SQL_NAMES = ['query', 'statement'];

const SQL_START =
  /^\s*(?:--[^\n]*\n\s*)*(?:select|with|insert|update|delete|create|alter|drop|merge|explain|pragma)\b/i;
const PYTHON_LINE =
  /^(?:import [\w.]+|from [\w.]+ import |(?:async )?def \w+\(|class \w+[(:]|print\(|if __name__)/m;
const JAVASCRIPT_LINE =
  /^(?:const|let|var) \w+ = |^(?:async )?function \w*\(|^import .* from ['"]|console\.log\(/m;
const UNIFIED_DIFF =
  /^(?:diff --git |--- [^\n]+\n\+\+\+ [^\n]+\n@@ |@@ -\d+(?:,\d+)? \+\d+)/m;
const SHEBANG = /^#!\S*\/(?:env )?(?<program>[a-z]+)/;

/** Find the kind of a text, from its argument's name, its part of the tool's JSON Schema, and the text itself. */
export function kindOf(
  name: string,
  schema: JsonValue | undefined,
  text: string
): ValueKind {
  const image = imageOf(text);
  if (image) {
    return { kind: 'image', image };
  }
  const mimeType = isColored(text)
    ? (bySchema(schema) ?? byText(text) ?? byName(name, text))
    : null;
  return mimeType ? { kind: 'code', mimeType } : { kind: 'text' };
}

/** Whether an editor shows a text as it is, and without making the page wait. */
export function isColored(text: string): boolean {
  if (text.length > MAX_LENGTH || /\r(?!\n)/.test(text)) {
    return false; // of line breaks, an editor does not tell one from the other
  }
  const lines = text.split('\n');
  return (
    lines.length <= MAX_LINES && lines.every(line => line.length <= MAX_LINE)
  );
}

function bySchema(schema: JsonValue | undefined): string | null {
  if (!isObject(schema)) {
    return null;
  }
  const { contentMediaType, format } = schema;
  return (
    byMediaType(contentMediaType) ??
    (typeof format === 'string' ? language(format.toLowerCase()) : null)
  );
}

/** `application/x-python` and `text/python` are both Python. */
function byMediaType(type: JsonValue | undefined): string | null {
  const found =
    typeof type === 'string'
      ? /^(?:text|application)\/(?:[\w.-]+\+)?(?:x-)?(?<name>[a-z0-9]+)(?:;.*)?$/i.exec(
          type
        )
      : null;
  return language(found?.groups?.['name'].toLowerCase() ?? '');
}

function byText(text: string): string | null {
  if (UNIFIED_DIFF.test(text)) {
    return DIFF_TYPE;
  }
  const program = SHEBANG.exec(text)?.groups?.['program'];
  if (program) {
    return program === 'node' ? 'text/javascript' : language(program);
  }
  return /^\s*[{[]/.test(text) && isJson(text) ? JSON_TYPE : null;
}

/** Whether a text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function byName(name: string, text: string): string | null {
  const words = wordsOf(name);
  const named = words.map(language).find(Boolean);
  if (named) {
    return named;
  }
  const is = (names: readonly string[]): boolean =>
    words.some(word => names.includes(word));
  if (is(SHELL_NAMES)) {
    return SHELL;
  }
  if (is(SQL_NAMES) && SQL_START.test(text)) {
    return SQL;
  }
  return is(CODE_NAMES) ? guess(text) : null;
}

function guess(text: string): string | null {
  if (PYTHON_LINE.test(text)) {
    return PYTHON;
  }
  if (JAVASCRIPT_LINE.test(text)) {
    return 'text/javascript';
  }
  return SQL_START.test(text) ? SQL : null;
}

/** The words of a name: `newSql_text` has `new`, `sql` and `text`. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
}

function language(word: string): string | null {
  return Object.hasOwn(LANGUAGES, word) ? (LANGUAGES[word] ?? null) : null;
}
