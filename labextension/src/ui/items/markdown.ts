/**
 * Renders an agent's Markdown as nodes that load nothing and run nothing.
 *
 * JupyterLab parses and sanitizes it. What its sanitizer accepts can still load content from other addresses, match style
 * rules of the page, or trigger a command. So the nodes are built again, with only what Markdown itself can express.
 */
import { removeMath, replaceMath } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { TranslationBundle } from '@jupyterlab/translation';

import { segments } from '../text/visibleText';

/** What Markdown is rendered with. */
export interface IMarkdownContext {
  parser: IRenderMime.IMarkdownParser | null;
  sanitizer: IRenderMime.ISanitizer;
  trans: TranslationBundle;
}

/** Elements that are kept, without attributes other than those of `copyAttributes`. */
const KEPT = new Set(
  (
    'p br hr h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code kbd em strong b i u s del ins sub sup mark ' +
    'table thead tbody tfoot tr th td span div dl dt dd'
  ).split(' ')
);

/** Elements that are left out with all their content. */
const LEFT_OUT = new Set(
  'script style template noscript title head svg math select textarea button datalist'.split(
    ' '
  )
);

/** Elements that load content, with the attribute that has its address. */
const EMBEDDED: Readonly<Record<string, readonly string[]>> = {
  img: ['src', 'srcset'],
  audio: ['src'],
  video: ['src', 'poster'],
  source: ['src', 'srcset'],
  track: ['src'],
  iframe: ['src'],
  embed: ['src'],
  object: ['data']
};

/** The addresses that a link may have. */
const LINKED = /^(https?:\/\/|mailto:)/i;

/** Classes of code that JupyterLab has highlighted. */
const CODE_CLASSES = /^(language-[\w+#-]+|\u037c\w+)$/;

/**
 * The language of a code block that JupyterLab would render as a diagram. A diagram can refer to images at other
 * addresses, which are loaded when it is rendered.
 */
const DIAGRAM = /((?:`{3,}|~{3,})[^\S\n]*)mermaid/g;

/** Characters that change the direction of text, and control characters of terminals. */
const TURNING = /[^\P{Cc}\t\n\r]|[\u202a-\u202e\u2066-\u2069]/u;

/** TeX commands that link, style or embed. Math that contains one of them is shown as source text. */
const OBEYED_TEX =
  /\\(href|style|class|cssId|data|bbox|require|unicode|enclose|mmlToken|texttip|toggle|includegraphics|html)/;

/** Whether a text contains math that may be typeset. */
export function hasMath(text: string): boolean {
  return /\$|\\\(|\\\[|\\begin/.test(text) && !OBEYED_TEX.test(text);
}

/** Render Markdown as nodes that are not yet part of a document. */
export async function toNodes(
  text: string,
  context: IMarkdownContext
): Promise<Node[]> {
  const { parser, sanitizer } = context;
  if (!parser) {
    const block = document.createElement('p');
    block.className = 'jp-AgentBox-plain';
    block.append(...visibleNodes(text));
    return [block];
  }
  const { text: prose, math } = removeMath(text);
  const html = await parser.render(prose.replace(DIAGRAM, '$1text'));
  // Before sanitizing, which may remove an image's address: the link in its place shows that address.
  const quiet = withoutEmbedded(replaceMath(html, math), context);
  return harmless(sanitizer.sanitize(quiet));
}

/** Replace everything that would be loaded by text and links. */
function withoutEmbedded(
  html: string,
  context: Pick<IMarkdownContext, 'trans'>
): string {
  const { body } = parse(html);
  for (const element of body.querySelectorAll(
    Object.keys(EMBEDDED).join(',')
  )) {
    element.replaceWith(...embedded(element, context));
  }
  return body.innerHTML;
}

/** Build new nodes from sanitized markup. */
export function harmless(html: string): Node[] {
  return childrenOf(parse(html).body);
}

/** A document that runs and loads nothing. */
function parse(html: string): Document {
  return new DOMParser().parseFromString(html, 'text/html');
}

function childrenOf(node: Node): Node[] {
  return [...node.childNodes].flatMap(copy);
}

function copy(node: Node): Node[] {
  if (node.nodeType === Node.TEXT_NODE) {
    return textNodes(node);
  }
  if (node.nodeType !== Node.ELEMENT_NODE) {
    return [];
  }
  const element = node as Element;
  const tag = element.localName;
  if (LEFT_OUT.has(tag) || Object.hasOwn(EMBEDDED, tag)) {
    return [];
  }
  const children = childrenOf(element);
  if (tag === 'a') {
    return link(element.getAttribute('href'), children);
  }
  if (tag === 'input') {
    return checkbox(element);
  }
  if (!KEPT.has(tag)) {
    return children;
  }
  const kept = document.createElement(tag);
  copyAttributes(element, kept);
  kept.append(...children);
  return [kept];
}

function copyAttributes(from: Element, to: Element): void {
  const classes = [...from.classList].filter(one => CODE_CLASSES.test(one));
  if (classes.length > 0) {
    to.className = classes.join(' ');
  }
  const start = from.getAttribute('start');
  if (to.localName === 'ol' && /^\d{1,9}$/.test(start ?? '')) {
    to.setAttribute('start', start ?? '');
  }
  const align = from.getAttribute('align') ?? '';
  if (/^t[hd]$/.test(to.localName) && /^(left|center|right)$/.test(align)) {
    (to as HTMLElement).style.textAlign = align;
  }
}

/** The replacement of an image or a video: its alternative text and a link to it. */
function embedded(
  element: Element,
  { trans }: Pick<IMarkdownContext, 'trans'>
): Node[] {
  const [address] = EMBEDDED[element.localName]
    .map(name => element.getAttribute(name)?.trim().split(/\s/)[0] ?? '')
    .filter(Boolean);
  const words =
    element.getAttribute('alt') ||
    element.getAttribute('title') ||
    trans.__('embedded content');
  const nodes = [document.createTextNode(words)];
  return isInLink(element) ? nodes : link(address ?? null, nodes);
}

function isInLink(element: Element): boolean {
  return element.parentElement?.closest('a[href]') !== null;
}

/** A link that opens in a new tab and shows its address. */
function link(address: string | null, children: Node[]): Node[] {
  const url = address && LINKED.test(address.trim()) ? address.trim() : null;
  if (url === null) {
    return children;
  }
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.title = url;
  anchor.target = '_blank';
  anchor.rel = 'noopener noreferrer';
  anchor.append(...children);
  return [anchor];
}

/** The check box of a task list's item. */
function checkbox(element: Element): Node[] {
  if (element.getAttribute('type') !== 'checkbox') {
    return [];
  }
  const box = document.createElement('input');
  box.type = 'checkbox';
  box.disabled = true;
  box.checked = element.hasAttribute('checked');
  return [box];
}

/** In code, all invisible characters are shown; in prose, only those that change its direction. */
function textNodes(node: Node): Node[] {
  const text = node.textContent ?? '';
  const isCode = node.parentElement?.closest('code, pre') !== null;
  return isCode ? visibleNodes(text) : visibleNodes(text, TURNING);
}

function visibleNodes(text: string, shown?: RegExp): Node[] {
  if (shown && !shown.test(text)) {
    return [document.createTextNode(text)];
  }
  return segments(text).map(segment => {
    if (!segment.isEscape) {
      return document.createTextNode(segment.text);
    }
    const escape = document.createElement('span');
    escape.className = 'jp-AgentBox-escape';
    escape.textContent = segment.text;
    return escape;
  });
}
