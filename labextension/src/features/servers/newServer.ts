/**
 * The form of a new MCP server, and the entry that it stands for.
 */
import { isObject, parse, stringify } from '../../api/json';
import type { IJsonObject } from '../../api/json';

/** What is typed: of a program, of an address, or the entry itself. */
export interface INewServer {
  kind: 'program' | 'address' | 'json';
  name: string;
  command: string;
  /** One argument in each line. */
  args: string;
  /** One name of a variable in each line. */
  variables: string;
  url: string;
  /** `Name: value` in each line. */
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

/** A form that has an entry as JSON. */
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

/** The parts that have anything in them. */
function given(parts: IJsonObject): IJsonObject {
  return Object.fromEntries(
    Object.entries(parts).filter(
      ([, value]) => Object.keys(value as object).length > 0
    )
  );
}
