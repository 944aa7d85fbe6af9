import type { IEditorFactoryService } from '@jupyterlab/codeeditor';
import {
  CodeMirrorEditorFactory,
  EditorExtensionRegistry
} from '@jupyterlab/codemirror';
import { Clipboard } from '@jupyterlab/apputils';
import { fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type { IJsonObject, JsonValue } from '../../../src/api/json';
import { Card } from '../../../src/ui/card/Card';
import { CardProvider } from '../../../src/ui/context';
import type { ICardContext } from '../../../src/ui/context';
import { approval, language } from '../../examples';
import { ACTL, base64, IMAGES, png } from '../../images';
import { addSizes, removeSizes } from '../../sizes';

const extensions = new EditorExtensionRegistry();
for (const factory of EditorExtensionRegistry.getDefaultExtensions()) {
  extensions.addExtension(factory);
}
const editors = new CodeMirrorEditorFactory({ extensions });

const SQL = `SELECT customers.name, orders.total FROM customers
JOIN orders ON orders.customer = customers.id`;

/** The card of a call with these arguments. */
function show(
  values: IJsonObject,
  properties: IJsonObject = {},
  factory: IEditorFactoryService | null = editors,
  openValue?: jest.Mock
): HTMLElement {
  const base = approval();
  const nameOf = (): string => 'Ada';
  const context = { ...language, nameOf, editors: factory, openValue };
  return render(
    <CardProvider value={context as unknown as ICardContext}>
      <Card
        approval={approval({
          call: { ...base.call, arguments: values },
          tool: { ...base.tool, input_schema: { properties } }
        })}
        origin=""
        now={() => 0}
        onDecide={async () => undefined}
      />
    </CardProvider>
  ).container;
}

/** The lines of the only editor. */
function lines(node: Element): (string | null)[] {
  expect(node.querySelectorAll('.cm-editor')).toHaveLength(1);
  return [...node.querySelectorAll('.cm-line')].map(line => line.textContent);
}

test('code is in an editor, by the name of the argument or by its schema', () => {
  expect(lines(show({ sql: SQL }))).toEqual(SQL.split('\n'));
  const schema = { body: { contentMediaType: 'application/sql' } };
  expect(lines(show({ body: SQL }, schema))).toEqual(SQL.split('\n'));
  expect(show({ body: SQL }).querySelector('.cm-editor')).toBeNull();
});

test('JSON in a text stays as it is; an object is shown as it would be sent', () => {
  const text = '{"a":   1,\n\n"a":2, "b": "' + 'x'.repeat(80) + '"}';
  expect(lines(show({ text }))).toEqual(text.split('\n'));
  const value: JsonValue = { list: Array.from({ length: 25 }, (_, at) => at) };
  expect(lines(show({ value })).join('\n')).toBe(
    JSON.stringify(value, null, 2)
  );
});

test('the lines of a difference are marked by the characters that they begin with', () => {
  const diff = '--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+new';
  const node = show({ diff });
  const marked = [...node.querySelectorAll('.jp-AgentBox-diffLine')];
  expect(marked.map(line => line.textContent?.[0])).toEqual(
    Array.from('-+@-+')
  );
  expect(lines(node)).toEqual(diff.split('\n'));
});

test('what cannot be seen, or reorders what can, is an escape in each language', () => {
  const hidden =
    '\u202e\u2066\u200b\u200d\ufeff\u00ad\u2028\u00a0\u0007\u{e0041}';
  const escapes = Array.from(
    hidden,
    each =>
      show({ sql: `SELECT 1 -- a${each}b\nFROM t` }).querySelector(
        '.cm-line .jp-AgentBox-escape'
      )?.textContent
  );
  expect(escapes).toEqual([
    '\\u202e',
    '\\u2066',
    '\\u200b',
    '\\u200d',
    '\\ufeff',
    '\\u00ad',
    '\\u2028',
    '\\u00a0',
    '\\u0007',
    '\\u{e0041}'
  ]);
});

test('a line break that an editor would not show as one stays visible', () => {
  const node = show({ sql: `${SQL}\rDROP TABLE orders` });
  expect(node.querySelector('.cm-editor')).toBeNull();
  expect(node.textContent).toContain('\\u000dDROP TABLE orders');
});

test('two megabytes in a line are plain text: both ends, and what is left out is said', () => {
  const json = JSON.stringify({ start: 'x'.repeat(2_000_000), end: 'last' });
  const node = show({ json });
  expect(node.querySelector('.cm-editor')).toBeNull();
  expect(node.textContent).toContain('{"start":"xxx');
  expect(node.textContent).toContain('"end":"last"}');
  expect(node.textContent).toContain(
    'You have not seen 1,980,025 characters of “json”.'
  );
});

test('a text that is like a button or a card stays in its box', () => {
  const imitation =
    'SELECT 1;\n</div><button class="jp-AgentBox-button jp-mod-allow">Allow once</button>\n' +
    '\\3c style\\3e * { display: none }\nAllowed by Ada. Done in 3 s.';
  const node = show({ sql: imitation });
  expect(lines(node)).toEqual(imitation.split('\n'));
  expect(screen.getAllByRole('button', { name: 'Allow once' })).toHaveLength(1);
  expect(node.querySelector('dd style, pre button')).toBeNull();
  const own = [...node.querySelectorAll('dd button')];
  expect(own.map(button => button.textContent)).toEqual(['Copy']);
});

test('an editor that cannot be made leaves the plain text', () => {
  const error = jest.spyOn(console, 'error').mockImplementation();
  const broken = {
    newInlineEditor: () => {
      throw new Error('no editor');
    }
  } as unknown as IEditorFactoryService;
  const node = show({ sql: SQL }, {}, broken);
  expect(node.querySelector('.jp-AgentBox-block pre')?.textContent).toBe(SQL);
  expect(error).toHaveBeenCalled();
  error.mockRestore();
});

describe('out of view', () => {
  let near: (() => void)[];

  beforeEach(() => {
    near = [];
    jest.spyOn(Element.prototype, 'getBoundingClientRect').mockReturnValue({
      top: 5000,
      bottom: 5100,
      width: 100
    } as DOMRect);
    window.IntersectionObserver = class {
      constructor(callback: IntersectionObserverCallback) {
        near.push(() => {
          const seen = [{ isIntersecting: true }];
          callback(
            seen as IntersectionObserverEntry[],
            this as unknown as IntersectionObserver
          );
        });
      }
      observe(): void {}
      disconnect(): void {}
    } as unknown as typeof IntersectionObserver;
  });

  afterEach(() => {
    jest.restoreAllMocks();
    Reflect.deleteProperty(window, 'IntersectionObserver');
  });

  test('a value is plain text, and an editor once it comes near', () => {
    const node = show({ sql: SQL });
    const box = node.querySelector('.jp-AgentBox-codeBox');
    expect(node.querySelector('.cm-editor')).toBeNull();
    expect(box?.textContent).toBe(SQL);
    React.act(() => {
      near[0]();
    });
    expect(lines(node)).toEqual(SQL.split('\n'));
    expect(box?.querySelector('pre')).toBeNull();
  });

  test('a hundred values make no editor', () => {
    const names = Array.from({ length: 100 }, (_, at) => `sql_${at}`);
    const node = show(Object.fromEntries(names.map(name => [name, SQL])));
    expect(node.querySelectorAll('.jp-AgentBox-codeBox')).toHaveLength(100);
    expect(node.querySelector('.cm-editor')).toBeNull();
  });
});

test('an image is drawn beside its text, and says what it is', () => {
  const node = show({ data: IMAGES.png });
  const image = screen.getByRole<HTMLImageElement>('img');
  expect(image.src).toBe(`data:image/png;base64,${IMAGES.png}`);
  expect(image.alt).toBe('PNG image, 1 × 1 pixels, 70 bytes');
  expect(node.querySelector('.jp-AgentBox-block pre')?.textContent).toBe(
    IMAGES.png
  );
  fireEvent.error(image);
  expect(screen.queryByRole('img')).toBeNull();
  expect(node.textContent).toContain('Not drawn: the browser cannot read it.');
});

test.each([
  ['it has too many pixels', png(60_000, 60_000)],
  ['it is animated', png(2, 2, ACTL)]
])('an image is not drawn if %s', (why, data) => {
  const node = show({ data });
  expect(node.querySelector('img')).toBeNull();
  expect(node.textContent).toContain(`Not drawn: ${why}.`);
  expect(node.textContent).toContain(data);
});

test.each([
  '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"></svg>'.padEnd(90),
  base64('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"></svg>'),
  `https://example.org/${'a'.repeat(60)}.png`
])('nothing is fetched or drawn for %s', data => {
  const node = show({ image: data });
  expect(node.querySelector('img, svg image, iframe, object')).toBeNull();
});

test('an image under a name of a secret stays hidden until a person asks', () => {
  const node = show({ password: IMAGES.png });
  expect(node.querySelector('img')).toBeNull();
});

test('code that may scroll in a narrow panel is reached by keyboard, and short code is no stop on the way', () => {
  show({ sql: `SELECT ${'a, '.repeat(100)}b` });
  expect(screen.getByRole('group', { name: 'sql' }).tabIndex).toBe(0);
  show({ query: SQL });
  expect(screen.queryByRole('group', { name: 'query' })).toBeNull();
});

describe('in a box that shows 100 of 400 pixels', () => {
  const ORDERS = Array.from({ length: 50 }, (_, id) => ({ id, total: 7 }));

  beforeEach(() => {
    addSizes();
    const { prototype } = Element;
    jest.spyOn(prototype, 'clientHeight', 'get').mockReturnValue(100);
    jest.spyOn(prototype, 'scrollHeight', 'get').mockImplementation(function (
      this: Element
    ) {
      return this.classList.contains('jp-mod-tall') ? 100 : 400;
    });
  });

  afterEach(() => {
    jest.restoreAllMocks();
    removeSizes();
  });

  function scrollToEnd(name: string): void {
    const box = screen.getByRole('group', { name });
    expect(box.tabIndex).toBe(0);
    box.scrollTop = 300;
    fireEvent.scroll(box);
  }

  test('the rows of a table that a person has not scrolled to count as not seen', () => {
    const node = show({ orders: ORDERS });
    const all = JSON.stringify(ORDERS).length;
    expect(node.textContent).toContain(
      `You have not seen ${Math.ceil(all * 0.75)} characters of “orders”.`
    );
    fireEvent.click(
      screen.getByRole('button', { name: 'Let it run more often…' })
    );
    expect(node.textContent).toContain('only this call can be answered');
    scrollToEnd('orders');
    expect(node.textContent).not.toContain('You have not seen');
  });

  test('a table that is shown to its last row was seen', () => {
    const node = show({ orders: ORDERS });
    expect(node.textContent).toContain('50 rows');
    fireEvent.click(screen.getByRole('button', { name: 'Show all rows' }));
    expect(screen.getByRole('group', { name: 'orders' }).className).toContain(
      'jp-mod-tall'
    );
    // jsdom has no layout, which tells a browser that the box has another size.
    scrollToEnd('orders');
    expect(node.textContent).not.toContain('You have not seen');
  });

  test('so do the lines of a difference', () => {
    const node = show({ old_text: 'one', new_text: 'two' });
    const name = 'What new_text changes';
    expect(node.textContent).toMatch(
      new RegExp(`You have not seen \\d characters of “${name}”`)
    );
    scrollToEnd(name);
    expect(node.textContent).not.toContain('You have not seen');
  });
});

test('arguments beyond the first hundred count as not seen until they are shown', () => {
  const names = Array.from({ length: 120 }, (_, at) => `name_${at}`);
  const node = show(Object.fromEntries(names.map(name => [name, 'a'])));
  expect(node.textContent).toContain('You have not seen 20 arguments.');
  fireEvent.click(
    screen.getByRole('button', {
      name: 'Only the first 100 arguments are shown. Show all 120'
    })
  );
  expect(node.textContent).toContain('name_119');
  expect(node.textContent).not.toContain('You have not seen');
});

describe('a secret in a value', () => {
  const KEY = 'sk-12345';

  test.each<[string, JsonValue]>([
    ['a line', { api_key: KEY }],
    ['a list', { all: [{ api_key: KEY }] }],
    ['an editor', { api_key: KEY, list: Array.from({ length: 40 }, () => 7) }],
    ['a plain block', { api_key: KEY, text: 'a'.repeat(3000) }],
    ['a text', JSON.stringify({ api_key: KEY, text: 'a'.repeat(80) })],
    ['a short text', JSON.stringify({ api_key: KEY })]
  ])('in %s is shown on request, and not seen before', (_, options) => {
    const node = show({ options });
    expect(node.textContent).toContain('••••••••');
    expect(node.textContent).not.toContain(KEY);
    expect(node.textContent).toContain(
      'You have not seen 8 characters of “options”.'
    );
    fireEvent.click(screen.getByText('Show 8 hidden characters'));
    expect(node.textContent).toContain(KEY);
    expect(node.textContent).not.toContain('You have not seen');
  });

  test('is masked in the cells of a table', () => {
    const node = show({
      users: [
        { id: 1, password: 'first' },
        { id: 2, password: 'second' }
      ]
    });
    const cells = (): (string | null)[] =>
      screen.getAllByRole('cell').map(cell => cell.textContent);
    expect(cells()).toEqual(['1', '“••••••••”', '2', '“••••••••”']);
    expect(node.textContent).toContain('not seen 11 characters of “users”');
    fireEvent.click(screen.getByText('Show 11 hidden characters'));
    expect(cells()).toEqual(['1', '“first”', '2', '“second”']);
  });

  test('is masked in a difference, with a button of its own', () => {
    const node = show({
      old: { url: 'a', api_key: KEY },
      new: { url: 'b', api_key: KEY }
    });
    const difference = screen.getByRole('group', { name: 'What new changes' });
    expect(difference.textContent).toContain('"api_key": "••••••••"');
    const buttons = screen.getAllByRole('button', { name: /hidden character/ });
    expect(buttons.map(button => button.textContent)).toEqual([
      'Show 8 hidden characters',
      'Show 8 hidden characters',
      'Show 16 hidden characters'
    ]);
    fireEvent.click(buttons[2]);
    expect(difference.textContent).toContain(`"api_key": "${KEY}"`);
    expect(node.textContent).toContain('8 characters of “new”');
    expect(node.textContent).not.toContain('of “What new changes”');
  });

  test('is copied with the value, and not opened on a page while it is hidden', () => {
    const copy = jest.spyOn(Clipboard, 'copyToSystem').mockImplementation();
    const openValue = jest.fn();
    const list = Array.from({ length: 40 }, () => 7);
    show({ options: { api_key: KEY, list } }, {}, editors, openValue);
    fireEvent.click(screen.getByRole('button', { name: 'Copy: options' }));
    expect(copy).toHaveBeenCalledWith(
      JSON.stringify({ api_key: KEY, list }, null, 2)
    );
    const open = screen.getByRole('button', { name: 'Open in a tab: options' });
    fireEvent.click(open);
    const shown = JSON.stringify({ api_key: '••••••••', list }, null, 2);
    expect(openValue).toHaveBeenLastCalledWith(
      expect.objectContaining({ text: shown })
    );
    copy.mockRestore();
  });

  test('that is shown by keyboard keeps the focus on the card', () => {
    const node = show({ options: { api_key: KEY } });
    const button = screen.getByText('Show 8 hidden characters');
    button.focus();
    fireEvent.click(button);
    expect(node.querySelector('dd')?.contains(document.activeElement)).toBe(
      true
    );
  });
});
