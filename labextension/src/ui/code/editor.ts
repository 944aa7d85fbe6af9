/**
 * Shows code in JupyterLab's editor, read-only or editable.
 */
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { CodeEditor } from '@jupyterlab/codeeditor';
import type { IEditorFactoryService } from '@jupyterlab/codeeditor';
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';

import { hiddenMarks } from './marks';

/** The code of cells, unless something else is said: magics and shell commands are part of what a cell may have. */
const MIME_TYPE = 'text/x-ipython';

/** The content of an editor. */
export interface IEditorOptions {
  host: HTMLElement;
  code: string;
  /** The language; by default that of cells. */
  mimeType?: string;
  /** The label for screen readers. */
  name: string;
  /** The marks besides those of invisible characters. */
  marks?: readonly Extension[];
  /** Is told of each change; without it, the code is read-only. */
  onChange?: (code: string) => void;
}

/** An open editor. */
export interface IOpenEditor extends IDisposable {
  focus(): void;
  /** Scroll to a line, from 1. */
  reveal(line: number): void;
}

/** The same code with the line breaks of an editor, into which Python converts all others. */
export function withPlainBreaks(code: string): string {
  return code.replace(/\r\n?/g, '\n');
}

/** Open an editor in a node. */
export function openEditor(
  factory: IEditorFactoryService,
  options: IEditorOptions
): IOpenEditor {
  const { host, name, mimeType = MIME_TYPE, marks = [], onChange } = options;
  const isReadOnly = onChange === undefined;
  const model = new CodeEditor.Model({ mimeType });
  model.sharedModel.setSource(withPlainBreaks(options.code));
  const attributes: Record<string, string> = { 'aria-label': name };
  const editor = factory.newInlineEditor({
    host,
    model,
    config: {
      lineNumbers: true,
      lineWrap: true,
      // A fold hides what would run.
      codeFolding: false,
      // Ours shows more of them, and which they are.
      highlightSpecialCharacters: false,
      highlightActiveLine: false,
      readOnly: isReadOnly,
      tabFocusable: !isReadOnly
    },
    extensions: [
      EditorView.contentAttributes.of(
        isReadOnly ? { ...attributes, 'aria-readonly': 'true' } : attributes
      ),
      EditorView.editable.of(!isReadOnly),
      EditorView.updateListener.of(update => {
        if (update.docChanged) {
          onChange?.(update.state.doc.toString());
        }
      }),
      hiddenMarks(),
      ...marks
    ]
  });
  if (isReadOnly) {
    host.addEventListener('keydown', keepKeys, true);
    host.addEventListener('focusin', passFocusOn);
  }
  const closing = new DisposableDelegate(() => {
    host.removeEventListener('keydown', keepKeys, true);
    host.removeEventListener('focusin', passFocusOn);
    editor.dispose();
    model.dispose();
  });
  return Object.assign(closing, {
    focus: () => {
      editor.focus();
    },
    reveal: (line: number) => {
      editor.revealPosition({ line: line - 1, column: 0 });
    }
  });
}

/** A read-only editor gets no keys: Tab would change the text and keep the focus there. */
function keepKeys(event: KeyboardEvent): void {
  event.stopPropagation();
}

/** A click into a read-only editor gives the focus to what contains it, so that the keys of a card still work. */
function passFocusOn(event: FocusEvent): void {
  const host = event.currentTarget;
  if (host instanceof HTMLElement) {
    const around = host.parentElement?.closest<HTMLElement>('[tabindex]');
    around?.focus({ preventScroll: true });
  }
}
