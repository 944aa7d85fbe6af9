import type { JsonValue } from '../../../src/api/json';
import { kindOf } from '../../../src/ui/text/valueKind';
import { IMAGES } from '../../images';

/** The media type of a value, or what else it is. */
function kind(
  name: string,
  text: string,
  schema?: JsonValue
): string | undefined {
  const found = kindOf(name, schema, text);
  return found.kind === 'code' ? found.mimeType : found.kind;
}

test.each([
  ['sql', 'anything', 'text/x-sql'],
  ['query', 'SELECT 1', 'text/x-sql'],
  [
    'query',
    '-- all of them\nwith a as (select 1) select * from a',
    'text/x-sql'
  ],
  ['query', 'what is the weather in Oslo?', 'text'],
  ['python_code', 'x', 'text/x-python'],
  ['code', 'import os\nos.remove("a")', 'text/x-python'],
  ['code', 'const a = 1;', 'text/javascript'],
  ['code', 'ABC-123', 'text'],
  ['initScript', 'def main():\n    pass', 'text/x-python'],
  ['command', 'rm -rf build', 'text/x-sh'],
  ['text', '#!/bin/bash\nrm -rf build', 'text/x-sh'],
  ['text', '#!/usr/bin/env python3\nx', 'text/x-python'],
  ['text', '{"a": [1, 2]}', 'application/json'],
  ['text', '{"a": [1, 2}', 'text'],
  ['text', '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b', 'text/x-diff'],
  ['text', 'diff --git a/x b/x', 'text/x-diff'],
  ['text', '- a list\n+ of things', 'text'],
  ['constructor', 'x', 'text'],
  ['__proto__', 'x', 'text'],
  ['message', 'select a seat', 'text'],
  ['data', IMAGES.png, 'image']
])('of the argument %s, %j is %s', (name, text, expected) => {
  expect(kind(name, text)).toBe(expected);
});

test.each<[JsonValue, string]>([
  [{ contentMediaType: 'application/sql' }, 'text/x-sql'],
  [{ contentMediaType: 'text/x-python' }, 'text/x-python'],
  [{ contentMediaType: 'application/ld+json' }, 'application/json'],
  [{ contentMediaType: 'text/html; charset=utf-8' }, 'text/html'],
  [{ contentMediaType: 'image/svg+xml' }, 'text'],
  [{ contentMediaType: 'text/constructor' }, 'text'],
  [{ contentMediaType: 7 }, 'text'],
  [{ format: 'SQL' }, 'text/x-sql'],
  [{ format: 'date-time' }, 'text'],
  [null, 'text'],
  ['sql', 'text']
])('the schema %j says %s', (schema, expected) => {
  expect(kind('text', 'a text', schema)).toBe(expected);
});

test('what a schema claims makes no image of a text', () => {
  const schema = { contentMediaType: 'image/png', contentEncoding: 'base64' };
  expect(kind('image', '<svg onload="alert(1)">', schema)).toBe('text');
});

test.each([
  ['a long text', `[${'1,'.repeat(10_000)}1]`],
  ['a long line', `[${'1,'.repeat(1500)}1]`],
  ['many lines', `[${'\n'.repeat(2001)}]`],
  ['line breaks that an editor does not tell apart', '[1,\r2]'],
  ['2 MB in one line', JSON.stringify({ a: 'x'.repeat(2_000_000) })]
])('%s is plain text, whatever it is', (_, text) => {
  expect(kind('json', text)).toBe('text');
});

interface ICpuTime {
  user: number;
}

/** Node's, of which a page has no types. */
declare const process: { cpuUsage: (since?: ICpuTime) => ICpuTime };

/**
 * Looks at a text that doubles again and again, so that a pattern whose time grows much faster than the text fails while it
 * still ends. What counts is processor time, which other work on the machine does not use up.
 */
test('nothing is slow, however a text is made', () => {
  const most = 10_000_000; // microseconds; none of the texts needs a tenth of it
  for (const start of [
    '-- \n',
    '--- a\n',
    '@@ -1',
    '#!',
    'import ',
    '/9j/',
    '{'
  ]) {
    const before = process.cpuUsage();
    const used = (): number => process.cpuUsage(before).user;
    for (let times = 4; times < 500_000 && used() < most; times *= 2) {
      for (const name of ['query', 'code', 'diff', 'text']) {
        kind(name, start.repeat(times));
      }
    }
    expect(used()).toBeLessThan(most);
  }
});
