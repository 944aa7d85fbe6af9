/**
 * Marks in code: invisible characters, characters that are not what they look like, and lines with findings.
 */
import { RangeSetBuilder } from '@codemirror/state';
import type { Extension, Text } from '@codemirror/state';
import {
  Decoration,
  EditorView,
  MatchDecorator,
  ViewPlugin,
  WidgetType
} from '@codemirror/view';
import type { DecorationSet, ViewUpdate } from '@codemirror/view';

import type { ILookAlike } from '../../api/protocol';
import { hiddenCharacters } from '../text/visibleText';
import type { IFinding, Severity } from './findings';

/** Replaces an invisible character. */
class Escape extends WidgetType {
  constructor(private readonly _text: string) {
    super();
  }

  override eq(other: Escape): boolean {
    return other._text === this._text;
  }

  toDOM(): HTMLElement {
    const node = document.createElement('span');
    node.className = 'jp-AgentBox-escape';
    node.textContent = this._text;
    return node;
  }
}

/** Shows an escape in place of each invisible character, like other texts of a request. */
export function hiddenMarks(): Extension {
  return ViewPlugin.define(
    view => ({
      marks: escapesIn(view),
      update(update: ViewUpdate): void {
        if (update.docChanged || update.viewportChanged) {
          this.marks = escapesIn(update.view);
        }
      }
    }),
    { decorations: ({ marks }) => marks }
  );
}

function escapesIn(view: EditorView): DecorationSet {
  const marks = new RangeSetBuilder<Decoration>();
  for (const { from, to } of view.visibleRanges) {
    const text = view.state.sliceDoc(from, to);
    for (const { index, length, escape } of hiddenCharacters(text)) {
      const start = from + index;
      const widget = new Escape(escape);
      marks.add(start, start + length, Decoration.replace({ widget }));
    }
  }
  return marks.finish();
}

/** Marks characters that, according to the server, are not what they look like. */
export function lookAlikeMarks(found: readonly ILookAlike[]): Extension {
  const names = new Map(
    found.map(({ code, name }) => [codePoint(code), `${code} ${name}`])
  );
  if (names.size === 0) {
    return [];
  }
  const letters = [...names.keys()].map(code => `\\u{${code.toString(16)}}`);
  const decorator = new MatchDecorator({
    regexp: new RegExp(`[${letters.join('')}]`, 'gu'),
    decoration: ([letter]) =>
      Decoration.mark({
        class: 'jp-AgentBox-lookAlike',
        attributes: { title: names.get(letter.codePointAt(0) ?? 0) ?? '' }
      })
  });
  return ViewPlugin.define(
    view => ({
      marks: decorator.createDeco(view),
      update(update: ViewUpdate): void {
        this.marks = decorator.updateDeco(update, this.marks);
      }
    }),
    { decorations: ({ marks }) => marks }
  );
}

/** The code point of a character that is named like `U+0430`. */
function codePoint(code: string): number {
  return parseInt(code.replace(/^U\+/, ''), 16) || 0xfffd;
}

/** How the lines of a unified difference begin; a line without a class is as it was. */
const DIFF_CLASSES: Partial<Record<string, string>> = {
  '+': 'jp-mod-added',
  '-': 'jp-mod-removed',
  '@': 'jp-mod-hunk'
};

/** Colors the lines of a unified difference, by the character that each begins with. */
export function diffMarks(): Extension {
  return EditorView.decorations.compute(['doc'], state => {
    const marks = new RangeSetBuilder<Decoration>();
    for (let number = 1; number <= state.doc.lines; number++) {
      const { from, text } = state.doc.line(number);
      const name = DIFF_CLASSES[text.charAt(0)];
      if (name) {
        const line = Decoration.line({ class: `jp-AgentBox-diffLine ${name}` });
        marks.add(from, from, line);
      }
    }
    return marks.finish();
  });
}

const WEIGHTS: readonly Severity[] = ['info', 'warning', 'error'];

/** Marks the lines with findings, by the most serious of them. */
export function findingMarks(findings: readonly IFinding[]): Extension {
  return EditorView.decorations.compute(['doc'], state =>
    linesOf(findings, state.doc)
  );
}

function linesOf(findings: readonly IFinding[], doc: Text): DecorationSet {
  const marks = new RangeSetBuilder<Decoration>();
  const heaviest = new Map<number, number>();
  for (const { line, severity } of findings) {
    const number = Math.min(line, doc.lines);
    const weight = WEIGHTS.indexOf(severity);
    heaviest.set(number, Math.max(weight, heaviest.get(number) ?? 0));
  }
  for (const [number, weight] of [...heaviest].sort(([a], [b]) => a - b)) {
    const { from } = doc.line(number);
    const name = `jp-AgentBox-findingLine jp-mod-${WEIGHTS[weight]}`;
    marks.add(from, from, Decoration.line({ class: name }));
  }
  return marks.finish();
}
