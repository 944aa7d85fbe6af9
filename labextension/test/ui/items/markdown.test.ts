import { Sanitizer } from '@jupyterlab/apputils';
import { marked } from 'marked';

import { hasMath, toNodes } from '../../../src/ui/items/markdown';
import { MarkdownView } from '../../../src/ui/items/MarkdownView';
import { trans } from '../../examples';

/** JupyterLab's parser without the colors of code. */
const parser = {
  render: (source: string) =>
    Promise.resolve(marked.parse(source, { gfm: true, async: false }))
};

const context = { parser, sanitizer: new Sanitizer(), trans };

async function render(source: string): Promise<HTMLElement> {
  const host = document.createElement('div');
  host.append(...(await toNodes(source, context)));
  return host;
}

const LINK = 'target="_blank" rel="noopener noreferrer"';

test.each([
  // What Markdown says is kept.
  ['# A *b* `c`', '<h1>A <em>b</em> <code>c</code></h1>'],
  ['3. a\n4. b', '<ol start="3">\n<li>a</li>\n<li>b</li>\n</ol>'],
  ['~~a~~', '<p><del>a</del></p>'],
  ['- [x] a', '<ul>\n<li><input type="checkbox" disabled=""> a</li>\n</ul>'],
  [
    '| a |\n|--:|\n| 1 |',
    '<table>\n<thead>\n<tr>\n<th style="text-align: right;">a</th>\n</tr>\n</thead>\n<tbody><tr>\n' +
      '<td style="text-align: right;">1</td>\n</tr>\n</tbody></table>'
  ],
  [
    '```python\na < b\n```',
    '<pre><code class="language-python">a &lt; b\n</code></pre>'
  ],
  // Links say where they lead, and open in a tab of their own.
  [
    '[a](https://b.org/c "d")',
    `<p><a href="https://b.org/c" title="https://b.org/c" ${LINK}>a</a></p>`
  ],
  ['[a](javascript:alert(1))', '<p>a</p>'],
  ['[a](data:text/html,<script>alert(1)</script>)', '<p>a</p>'],
  ['[a](/lab/api/workspaces)', '<p>a</p>'],
  ['<a href="#x" onclick="alert(1)" id="x">a</a>', '<p>a</p>'],
  // Nothing loads by itself: a picture is its words, and a link.
  [
    '![a](https://b.org/c.png)',
    `<p><a href="https://b.org/c.png" title="https://b.org/c.png" ${LINK}>a</a></p>`
  ],
  ['![a](data:image/png;base64,AAAA)', '<p>a</p>'],
  ['![](/files/secret.png)', '<p>embedded content</p>'],
  [
    '[![a](https://b.org/c.png)](https://d.org/)',
    `<p><a href="https://d.org/" title="https://d.org/" ${LINK}>a</a></p>`
  ],
  [
    '<img src=x srcset="https://b.org/c.png 2x" alt="a" onerror="alert(1)">',
    'a'
  ],
  [
    '<video src="https://b.org/c.mp4" poster="https://b.org/c.png"></video>',
    `<p><a href="https://b.org/c.mp4" title="https://b.org/c.mp4" ${LINK}>embedded content</a></p>`
  ],
  [
    '<iframe src="https://b.org/"></iframe>',
    `<a href="https://b.org/" title="https://b.org/" ${LINK}>embedded content</a>`
  ],
  ['<p style="background:url(https://b.org/c.png)">a</p>', '<p>a</p>'],
  [
    '<table background="https://b.org/c.png"><tr><td>a</table>',
    /^<table><tbody><tr><td>a<\/td><\/tr><\/tbody><\/table>\s*$/
  ],
  ['<svg><image href="https://b.org/c.png"/></svg>', '<p></p>'],
  ['<link rel="stylesheet" href="https://b.org/c.css">', ''],
  // HTML is inert, and looks like no part of the page.
  ['<script>alert(1)</script>a', /^(<p>)?a?(<\/p>\n)?$/],
  ['<b onmouseover="alert(1)">a</b>', '<p><b>a</b></p>'],
  ['<div class="jp-Dialog" id="main">a</div>', '<div>a</div>'],
  ['<span data-commandlinker-command="x">a</span>', '<p><span>a</span></p>'],
  [
    '<button class="jp-AgentBox-button">Allow once</button>',
    /^(<p>)?(Allow once)?(<\/p>)?$/
  ],
  ['<form action="https://b.org"><input name="a" value="b"></form>', ''],
  ['<details open><summary>a</summary>b</details>', 'ab'],
  // What turns a text around is shown; joiners and blanks of a language are not touched.
  ['a\u202eb', '<p>a<span class="jp-AgentBox-escape">\\u202e</span>b</p>'],
  ['a\u00a0b 👩‍💻', '<p>a&nbsp;b 👩‍💻</p>'],
  [
    '`a\u200bb`',
    '<p><code>a<span class="jp-AgentBox-escape">\\u200b</span>b</code></p>'
  ]
])('%j', async (source, expected) => {
  const host = await render(source);
  const html = host.innerHTML.trim();
  if (typeof expected === 'string') {
    expect(html).toBe(expected);
  } else {
    expect(html).toMatch(expected);
  }
  for (const name of ['src', 'srcset', 'id', 'name', 'poster', 'data']) {
    expect(host.querySelector(`[${name}]`)).toBeNull();
  }
});

test.each([
  '```mermaid\nflowchart LR\nA@{ img: "https://b.org/c.png" }\n```',
  '> ~~~~ mermaid\n> A\n> ~~~~',
  '```\u00a0mermaid\nA\n```'
])('no diagram is drawn, for it may load pictures: %j', async source => {
  const sources: string[] = [];
  const watched = {
    render: (text: string) => {
      sources.push(text);
      return parser.render(text);
    }
  };
  const nodes = await toNodes(source, { ...context, parser: watched });
  expect(sources.join('')).not.toContain('mermaid');
  expect(nodes.map(node => node.textContent).join('')).toContain('A');
});

test.each([
  ['$a^2$', true],
  ['\\(a\\)', true],
  ['no math', false],
  ['$\\href{https://b.org}{a}$', false],
  ['$\\style{background:url(https://b.org)}{a}$', false]
])('math of %j is typeset: %s', (text, expected) => {
  expect(hasMath(text)).toBe(expected);
});

test('without a parser the text is shown as it is', async () => {
  const host = document.createElement('div');
  host.append(...(await toNodes('<b>*a*', { ...context, parser: null })));
  expect(host.textContent).toBe('<b>*a*');
  expect(host.querySelector('b')).toBeNull();
});

test('words that come leave in place what was drawn before', async () => {
  const host = document.createElement('div');
  const view = new MarkdownView(host, { ...context, typesetter: null });
  await view.show('first\n\nseco');
  const [first] = host.children;
  await view.show('first\n\nsecond\n\nthird');
  expect(host.textContent?.replace(/\n/g, ' ').trim()).toBe(
    'first second third'
  );
  expect(host.children[0]).toBe(first);
});

test('of words that come faster than they are drawn the last are shown', async () => {
  const host = document.createElement('div');
  let asked = 0;
  const slow = {
    render: (source: string) => {
      asked++;
      return parser.render(source);
    }
  };
  const view = new MarkdownView(host, {
    ...context,
    parser: slow,
    typesetter: null
  });
  const first = view.show('a');
  void view.show('a b');
  void view.show('a b c');
  await first;
  expect(host.textContent?.trim()).toBe('a b c');
  expect(asked).toBe(2);
});

test('what a parser cannot take is shown as text', async () => {
  jest.spyOn(console, 'warn').mockReturnValue();
  const host = document.createElement('div');
  const broken = { render: () => Promise.reject(new Error('broken')) };
  const view = new MarkdownView(host, {
    ...context,
    parser: broken,
    typesetter: null
  });
  await view.show('*a*');
  expect(host.textContent).toBe('*a*');
});
