import {
  CodeMirrorEditorFactory,
  EditorExtensionRegistry
} from '@jupyterlab/codemirror';
import { fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type { IApproval } from '../../../src/api/protocol';
import { Card } from '../../../src/ui/card/Card';
import { CardProvider } from '../../../src/ui/context';
import type { ICardContext } from '../../../src/ui/context';
import { approval, language } from '../../examples';

const extensions = new EditorExtensionRegistry();
for (const factory of EditorExtensionRegistry.getDefaultExtensions()) {
  extensions.addExtension(factory);
}
const editors = new CodeMirrorEditorFactory({ extensions });

const context = {
  ...language,
  nameOf: () => 'Ada',
  editors
} as unknown as ICardContext;

/** A request to run code. */
function request(code: string, fields: Partial<IApproval['call']> = {}) {
  const base = approval();
  return approval({
    call: {
      ...base.call,
      server: 'notebook',
      tool: 'run_code',
      arguments: { code },
      ...fields
    },
    tool: {
      ...base.tool,
      annotations: {
        outcome: 'ask',
        findings: [
          {
            code: 'AB205',
            severity: 'error',
            message: 'calls a tool that writes',
            line: 2,
            column: 1
          },
          { code: 'S1', severity: 'info', message: 'b', line: 1, column: 1 }
        ]
      },
      input_schema: {
        type: 'object',
        properties: { code: { type: 'string' } }
      }
    }
  });
}

function show(item: IApproval): HTMLElement {
  return render(
    <CardProvider value={context}>
      <Card
        approval={item}
        origin=""
        now={() => 0}
        onDecide={async () => undefined}
      />
    </CardProvider>
  ).container;
}

test('code that asks is in an editor to read, with a number at each line', () => {
  const node = show(request('import os\nos.remove("a")'));
  const lines = [...node.querySelectorAll('.cm-content .cm-line')];
  expect(lines.map(line => line.textContent)).toEqual([
    'import os',
    'os.remove("a")'
  ]);
  const content = node.querySelector('.cm-content');
  expect(content?.getAttribute('contenteditable')).toBe('false');
  expect(node.querySelector('.cm-lineNumbers')?.textContent).toContain('12');
});

test('findings stand at their lines, and in the order of the lines', () => {
  const node = show(request('import os\nos.remove("a")'));
  const items = screen.getAllByRole('listitem').map(item => item.textContent);
  expect(items).toEqual([
    'Note line 1 b S1',
    'Error line 2 calls a tool that writes AB205'
  ]);
  const marked = [...node.querySelectorAll('.jp-AgentBox-findingLine')];
  expect(marked.map(line => [line.textContent, line.className])).toEqual([
    ['import os', expect.stringContaining('jp-mod-info')],
    ['os.remove("a")', expect.stringContaining('jp-mod-error')]
  ]);
});

test('text that is like a card stays in the editor', () => {
  const node = show(request('x = 1\n\nAllowed by Ada. Done in 3 s.'));
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    if (walker.currentNode.textContent?.includes('Allowed by')) {
      expect(
        walker.currentNode.parentElement?.closest('.jp-AgentBox-codeBox')
      ).not.toBeNull();
    }
  }
});

test('characters that cannot be seen are escapes, and look-alike letters are marked', () => {
  const found = {
    of: 'value',
    code: 'U+0430',
    name: 'CYRILLIC SMALL LETTER A',
    like: 'a'
  };
  const node = show(request('\u0430 = "x\u202ey"', { look_alikes: [found] }));
  const line = node.querySelector('.cm-line');
  expect(line?.textContent).toBe('\u0430 = "x\\u202ey"');
  expect(line?.querySelector('.jp-AgentBox-escape')?.textContent).toBe(
    '\\u202e'
  );
  const letter = line?.querySelector<HTMLElement>('.jp-AgentBox-lookAlike');
  expect(letter?.textContent).toBe('\u0430');
  expect(letter?.title).toBe('U+0430 CYRILLIC SMALL LETTER A');
});

test('a short argument of another tool is in no editor', () => {
  const node = show(request('import os', { server: 'shop' }));
  expect(node.querySelector('.cm-editor')).toBeNull();
  expect(node.textContent).toContain('import os');
});

test('no key changes code that is there to read', () => {
  const node = show(request('import os'));
  const content = node.querySelector('.cm-content') as HTMLElement;
  fireEvent.keyDown(content, { key: 'Tab', keyCode: 9 });
  fireEvent.keyDown(content, { key: 'Enter', keyCode: 13 });
  expect(content.textContent).toBe('import os');
});
