// Writes the messages of the lab extension as a gettext template, in the contexts in which JupyterLab looks them up.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';

/** The methods of a bundle, and how many of their first arguments are a context and messages. */
const METHODS = { __: [0, 1], _n: [0, 2], _p: [1, 1], _np: [1, 2] };

const messages = new Map();
const problems = [];

function add(context, id, plural, place) {
  const key = JSON.stringify([context, id]);
  const known = messages.get(key) ?? { context, id, plural, places: [] };
  known.plural ??= plural;
  known.places.push(place);
  messages.set(key, known);
}

/** The text of an expression that is known without running it; otherwise `null`. */
function textOf(node) {
  if (ts.isStringLiteralLike(node)) {
    return node.text;
  }
  if (
    ts.isBinaryExpression(node) &&
    node.operatorToken.kind === ts.SyntaxKind.PlusToken
  ) {
    const [left, right] = [textOf(node.left), textOf(node.right)];
    return left === null || right === null ? null : left + right;
  }
  return null;
}

function readSource(path) {
  const source = ts.createSourceFile(
    path,
    readFileSync(path, 'utf8'),
    ts.ScriptTarget.Latest,
    true
  );
  const visit = node => {
    ts.forEachChild(node, visit);
    if (
      !ts.isCallExpression(node) ||
      !ts.isPropertyAccessExpression(node.expression) ||
      !Object.hasOwn(METHODS, node.expression.name.text)
    ) {
      return;
    }
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    const place = `${path}:${line + 1}`;
    const [contexts, count] = METHODS[node.expression.name.text];
    const texts = node.arguments.slice(0, contexts + count).map(textOf);
    if (texts.length < contexts + count || texts.includes(null)) {
      problems.push(`${place}: a message must be a text that stands there`);
      return;
    }
    const context = contexts ? texts[0] : null;
    add(context, texts[contexts], count > 1 ? texts.at(-1) : undefined, place);
  };
  visit(source);
}

/** Titles and descriptions of the settings, as jupyterlab-translate takes them. */
function readSchema(path) {
  const visit = (value, keys) => {
    for (const [key, found] of Object.entries(value)) {
      const inside = [...keys, key];
      const where = inside.join('/');
      if (typeof found === 'object' && found !== null) {
        visit(found, inside);
      } else if (/^(title|description)$/.test(where)) {
        add('schema', found, undefined, path);
      } else if (
        /^(definitions\/.*\/)?properties\/.*\/(title|description)$/.test(where) ||
        where === 'jupyter.lab.setting-icon-label'
      ) {
        add('settings', found, undefined, path);
      } else if (/^jupyter\.lab\.menus\/.*\/label$/.test(where)) {
        add('menu', found, undefined, path);
      }
    }
  };
  visit(JSON.parse(readFileSync(path, 'utf8')), []);
}

function filesIn(directory, names) {
  return readdirSync(directory, { recursive: true })
    .filter(name => names.test(name))
    .map(name => join(directory, name))
    .sort();
}

function entry({ context, id, plural, places }) {
  const line = (name, text) => `${name} ${JSON.stringify(text)}`;
  return [
    ...places.map(place => `#: ${place}`),
    ...(context === null ? [] : [line('msgctxt', context)]),
    line('msgid', id),
    ...(plural === undefined
      ? [line('msgstr', '')]
      : [
          line('msgid_plural', plural),
          line('msgstr[0]', ''),
          line('msgstr[1]', '')
        ])
  ].join('\n');
}

for (const path of filesIn('labextension/src', /\.tsx?$/)) {
  readSource(path);
}
for (const path of filesIn('labextension/schema', /\.json$/)) {
  readSchema(path);
}
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
const head =
  'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"';
const [output] = process.argv.slice(2);
mkdirSync(dirname(output), { recursive: true });
writeFileSync(
  output,
  [head, ...[...messages.values()].map(entry)].join('\n\n') + '\n'
);
console.log(`${output}: ${messages.size} messages`);
