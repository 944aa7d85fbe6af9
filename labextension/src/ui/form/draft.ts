/**
 * Arguments that a person is editing, kept separate from the request until they are sent.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import { toFormSchema } from './formSchema';
import {
  isEqual,
  isObject,
  JsonSyntaxError,
  namesOf,
  parse,
  stringify
} from '../../api/json';
import type { IJsonObject } from '../../api/json';

/** The edited values, and the mode of editing. */
export interface IDraft {
  mode: 'form' | 'json';
  /** The values with which the form was opened. */
  start: IJsonObject;
  /** The values in the form. */
  values: IJsonObject;
  /** The text in the JSON field. */
  text: string;
  /** Why the mode could not be switched. */
  problem: string | null;
}

/** Begin to edit arguments, in a form if the schema and the values allow one. */
export function openDraft(values: IJsonObject, schema: IJsonObject): IDraft {
  return {
    mode: toFormSchema(schema, values) ? 'form' : 'json',
    start: values,
    values,
    text: stringify(values, 2),
    problem: null
  };
}

/** The edited arguments as text, to copy; empty if they are as they were. */
export function draftText({ mode, start, values, text }: IDraft): string {
  if (mode === 'json') {
    return text === stringify(start, 2) ? '' : text;
  }
  return isEqual(values, start) ? '' : stringify(values, 2);
}

/** Read a draft as arguments, or return why it is invalid. */
export function draftArguments(
  draft: IDraft,
  trans: TranslationBundle
): { values: IJsonObject | null; error: string | null } {
  if (draft.mode === 'form') {
    return { values: draft.values, error: null };
  }
  try {
    const values = parse(draft.text);
    if (isObject(values)) {
      return { values, error: null };
    }
    const error = trans.__('The arguments must be a JSON object: {…}');
    return { values: null, error };
  } catch (error) {
    return { values: null, error: syntaxMessage(error, trans) };
  }
}

/** Switch between form and JSON; a draft that cannot be converted stays as it is, with the reason. */
export function switchMode(
  draft: IDraft,
  mode: IDraft['mode'],
  schema: IJsonObject,
  trans: TranslationBundle
): IDraft {
  if (mode === draft.mode) {
    return draft;
  }
  if (mode === 'json') {
    return { ...draft, mode, text: stringify(draft.values, 2), problem: null };
  }
  const { values } = draftArguments(draft, trans);
  if (!values) {
    const problem = trans.__('Fix the JSON before switching to the form.');
    return { ...draft, problem };
  }
  if (!toFormSchema(schema, values)) {
    const problem = trans.__('There is no form for these arguments.');
    return { ...draft, problem };
  }
  return { ...draft, mode, start: values, values, problem: null };
}

/** The names whose value was added, removed or changed. */
export function changedNames(
  before: IJsonObject,
  after: IJsonObject
): string[] {
  const names = new Set([...namesOf(before), ...namesOf(after)]);
  return [...names].filter(
    name =>
      Object.hasOwn(before, name) !== Object.hasOwn(after, name) ||
      (Object.hasOwn(before, name) && !isEqual(before[name], after[name]))
  );
}

/** What the parser expected, in the page's language. */
function describeExpected(expected: string, trans: TranslationBundle): string {
  const texts: Record<string, string> = {
    'the end': trans.__('the end'),
    'a name in double quotes': trans.__('a name in double quotes'),
    'a colon': trans.__('a colon'),
    'a comma or a closing brace': trans.__('a comma or a closing brace'),
    'a comma or a closing bracket': trans.__('a comma or a closing bracket'),
    'a string that ends on its line, with valid escapes': trans.__(
      'a string that ends on its line, with valid escapes'
    ),
    'a value': trans.__('a value')
  };
  return texts[expected] ?? expected;
}

/** What is wrong with a text that is not JSON, and where. */
export function syntaxMessage(
  error: unknown,
  trans: TranslationBundle
): string {
  if (error instanceof JsonSyntaxError) {
    return trans.__(
      'Invalid JSON: expected %3 at line %1, column %2.',
      error.line,
      error.column,
      describeExpected(error.expected, trans)
    );
  }
  return trans.__('Invalid JSON.');
}
