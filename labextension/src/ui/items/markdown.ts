/**
 * Markdown of an agent as nodes that load nothing and run nothing.
 *
 * JupyterLab parses and sanitizes it. What its sanitizer lets through may still speak to other addresses, answer to style
 * rules of the page, or be a command of it: so the nodes are built anew, from what Markdown itself can say and nothing else.
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

/** Elements that are kept, without their attributes but those of `copyAttributes`. */
const KEPT = new Set(
  (
    'p br hr h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code kbd em strong b i u s del ins sub sup mark ' +
    'table thead tbody tfoot tr th td span div dl dt dd'
  ).split(' ')
);

/** Elements that are left out with all that is in them. */
const LEFT_OUT = new Set(
  'script style template noscript title head svg math select textarea button datalist'.split(
    ' '
  )
);

/** Elements that would load something, and where they say what. */
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

/** What a link may open. */
const LINKED = /^(https?:\/\/|mailto:)/i;

/** Classes of code that JupyterLab has highlighted. */
const CODE_CLASSES = /^(language-[\w+#-]+|\u037c\w+)$/;

/**
 * The language of a block that JupyterLab would draw as a diagram. Diagrams can name pictures of other addresses, which
 * are loaded as they are drawn.
 */
const DIAGRAM = /((?:`{3,}|~{3,})[^\S\n]*)mermaid/g;

/** Characters that turn a text around, or that a terminal would obey. */
const TURNING = /[^\P{Cc}\t\n\r]|[\u202a-\u202e\u2066-\u2069]/u;

/** Commands of TeX that link, style or embed: with one of them, math is shown as it is written. */
const OBEYED_TEX =
  /\\(href|style|class|cssId|data|bbox|require|unicode|enclose|mmlToken|texttip|toggle|includegraphics|html)/;

/** Whether a text has math that may be typeset. */
export function hasMath(text: string): boolean {
  return /\$|\\\(|\\\[|\\begin/.test(text) && !OBEYED_TEX.test(text);
}

/** Render Markdown as nodes that are in no document yet. */
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
  // Before the sanitizer: it may take out where a picture is, which the link in its place tells.
  const quiet = withoutEmbedded(replaceMath(html, math), context);
  return harmless(sanitizer.sanitize(quiet));
}

/** Put words and links in the place of all that would be loaded. */
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

/** Build nodes anew from markup that was sanitized. */
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

/** What stands for a picture or a film: its words, and the way to it. */
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

/** A link that opens in a tab of its own, and says where it leads. */
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

/** A task in a list. */
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

/** In code, all that cannot be seen is shown; in prose only what turns it around: blanks and joiners are part of words. */
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
