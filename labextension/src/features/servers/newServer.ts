/**
 * The form for a new MCP server, and the entry that it describes.
 */
import { isObject, parse, stringify } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';

/** What is typed: a program, a URL, or the entry itself. */
export interface INewServer {
  kind: 'program' | 'address' | 'json';
  name: string;
  command: string;
  /** One argument per line. */
  args: string;
  /** One name of a variable per line. */
  variables: string;
  url: string;
  /** One `Name: value` per line. */
  headers: string;
  json: string;
}

export const EMPTY: INewServer = {
  kind: 'program',
  name: '',
  command: '',
  args: '',
  variables: '',
  url: '',
  headers: '',
  json: '{}'
};

/** A form that contains an entry as JSON. */
export function formOf(name: string, configuration: IJsonObject): INewServer {
  return { ...EMPTY, kind: 'json', name, json: stringify(configuration, 2) };
}

/**
 * The entry that a form stands for. A variable gets a reference to the variable of its name: its value is no business of
 * a file. Throws a `SyntaxError` whose message is the line that cannot be read; it is empty if the entry is no JSON object.
 */
export function entryOf(form: INewServer): IJsonObject {
  if (form.kind === 'json') {
    return entryOfJson(form.json);
  }
  if (form.kind === 'address') {
    const headers: IJsonObject = {};
    for (const line of lines(form.headers)) {
      const [, name, value] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
      if (name === undefined || value === undefined) {
        throw new SyntaxError(line);
      }
      headers[name.trim()] = value;
    }
    return { url: form.url.trim(), ...given({ headers }) };
  }
  const env: IJsonObject = {};
  for (const line of lines(form.variables)) {
    const name = line.trim();
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      throw new SyntaxError(line);
    }
    env[name] = `\${${name}}`;
  }
  // An argument may have blanks at its ends; only lines without anything are none.
  const args = form.args.split('\n').filter(line => line !== '');
  return { command: form.command.trim(), ...given({ args, env }) };
}

/** A server's name, and its entry. */
export type NamedEntry = readonly [name: string, configuration: IJsonObject];

/**
 * The servers in a text from their instructions: a whole `mcp.json`, or one entry with its name, with or without
 * the braces around it. None if it is another text, as an entry alone is.
 */
export function serversIn(text: string): readonly NamedEntry[] {
  const found = text.trim().replace(/,$/, '');
  for (const candidate of [found, `{${found}}`]) {
    let value;
    try {
      value = parse(candidate);
    } catch {
      continue;
    }
    const servers = Object.entries(blockOf(value));
    if (servers.length > 0 && servers.every(isNamedEntry)) {
      return servers;
    }
  }
  return [];
}

function blockOf(value: JsonValue): IJsonObject {
  if (!isObject(value)) {
    return {};
  }
  const inner = ['mcpServers', 'servers', 'mcp']
    .map(key => value[key])
    .find(isObject);
  return inner && !isEntry(inner) ? blockOf(inner) : value;
}

function isNamedEntry(
  item: [string, JsonValue]
): item is [string, IJsonObject] {
  return isEntry(item[1]);
}

function isEntry(value: JsonValue): value is IJsonObject {
  return (
    isObject(value) &&
    (typeof value['command'] === 'string' || typeof value['url'] === 'string')
  );
}

/** A form for an entry: with fields if they can express all of it, otherwise with its JSON. */
export function filledForm([name, configuration]: NamedEntry): INewServer {
  const { command, args, env, url, headers } = configuration;
  const form: INewServer = {
    ...EMPTY,
    name,
    kind: url === undefined ? 'program' : 'address',
    command: String(command ?? ''),
    args: Array.isArray(args) ? args.join('\n') : '',
    variables: isObject(env) ? Object.keys(env).join('\n') : '',
    url: String(url ?? ''),
    headers: isObject(headers)
      ? Object.entries(headers)
          .map(([header, value]) => `${header}: ${String(value)}`)
          .join('\n')
      : ''
  };
  return isSame(form, configuration) ? form : formOf(name, configuration);
}

function isSame(form: INewServer, configuration: IJsonObject): boolean {
  try {
    return sorted(entryOf(form)) === sorted(configuration);
  } catch {
    return false;
  }
}

/** The text of an entry, whatever the order of its parts. */
function sorted(entry: IJsonObject): string {
  const names = Object.keys(entry).sort();
  return names.map(name => `${name}: ${stringify(entry[name])}`).join('\n');
}

function entryOfJson(text: string): IJsonObject {
  let entry;
  try {
    entry = parse(text);
  } catch {
    throw new SyntaxError();
  }
  if (!isObject(entry)) {
    throw new SyntaxError();
  }
  return entry;
}

function lines(text: string): string[] {
  return text.split('\n').filter(line => line.trim() !== '');
}

/** The parts that are not empty. */
function given(parts: IJsonObject): IJsonObject {
  return Object.fromEntries(
    Object.entries(parts).filter(
      ([, value]) => Object.keys(value as object).length > 0
    )
  );
}
