/**
 * Finds out what markup would do in the page, and removes what would contact other addresses or look like the page.
 */
import { harmlessStyle, isHarmlessStyle, mayBeClass } from './looks';

/** The findings in markup, most powerful first. */
export type Finding =
  | 'script'
  | 'handler'
  | 'link'
  | 'command'
  | 'frame'
  | 'object'
  | 'style'
  | 'remote'
  | 'other';

const ORDER: readonly Finding[] = [
  'script',
  'handler',
  'link',
  'command',
  'frame',
  'object',
  'style',
  'remote',
  'other'
];

const BY_TAG: Readonly<Record<string, Finding>> = {
  script: 'script',
  iframe: 'frame',
  frame: 'frame',
  frameset: 'frame',
  fencedframe: 'frame',
  portal: 'frame',
  object: 'object',
  embed: 'object',
  applet: 'object',
  style: 'style',
  link: 'style'
};

const URL_ATTRIBUTES = new Set([
  'href',
  'xlink:href',
  'src',
  'action',
  'formaction',
  'data',
  'poster',
  'background',
  'values',
  'to',
  'from'
]);

/** The elements and attributes that a browser loads at once, without a click. */
const LOADED = ['src', 'srcset', 'poster', 'background', 'data'];

/** The parts of a document that a browser adds, or that have no meaning in an output. */
const SILENT_TAGS = new Set(['html', 'head', 'body', 'title', 'meta']);

/** Markup that may be shown, and what was removed from it. */
export interface IExamined {
  html: string;
  findings: Finding[];
}

/** How often markup is made harmless and sanitized again before giving up. */
const ROUNDS = 3;

/**
 * Compare markup with what a sanitizer leaves of it. What is left loads nothing from elsewhere, and answers to no style
 * rule of the page.
 *
 * The sanitizer has the last word, so nothing that is put together here reaches the page as it is.
 */
export function examine(
  dirty: string,
  sanitize: (html: string) => string
): IExamined {
  const found = new Set<Finding>();
  let html = sanitize(dirty);
  const kept = new Set(elements(parse(html)).map(({ localName }) => localName));
  for (const element of elements(parse(dirty))) {
    inspect(element, found);
    const tag = element.localName;
    if (!kept.has(tag) && !SILENT_TAGS.has(tag) && !(tag in BY_TAG)) {
      found.add('other');
    }
  }
  for (let round = 0; ; round++) {
    const rest = parse(html);
    const isRemote = withoutRemote(rest);
    const isLikeThePage = withoutLooks(rest);
    if (isRemote) {
      found.add('remote');
    }
    if (!isRemote && !isLikeThePage) {
      break;
    }
    html = round < ROUNDS ? sanitize(rest.body.innerHTML) : '';
  }
  return { html, findings: ORDER.filter(finding => found.has(finding)) };
}

/** A document that neither runs nor loads anything. */
function parse(html: string): Document {
  return new DOMParser().parseFromString(html, 'text/html');
}

/** All elements, including those inside templates. */
function elements(root: ParentNode): Element[] {
  return [...root.querySelectorAll('*')].flatMap(element => [
    element,
    ...(element instanceof HTMLTemplateElement ? elements(element.content) : [])
  ]);
}

function inspect(element: Element, found: Set<Finding>): void {
  const finding = BY_TAG[element.localName];
  // The style sheet that pandas puts before its tables says so of itself; it is left out and not missed.
  if (finding && !(finding === 'style' && element.hasAttribute('scoped'))) {
    found.add(finding);
  }
  for (const { name, value } of element.attributes) {
    if (name.toLowerCase().startsWith('on')) {
      found.add('handler');
    } else if (name === 'srcdoc') {
      found.add('frame');
    } else if (name.startsWith('data-commandlinker-')) {
      found.add('command');
    } else if (URL_ATTRIBUTES.has(name) && runsCode(value)) {
      found.add('link');
    }
  }
}

/** Browsers ignore control characters and blanks before the scheme, and line breaks in it. */
function runsCode(url: string): boolean {
  // eslint-disable-next-line no-control-regex
  const scheme = url.replace(/[\u0000-\u0020]/g, '').toLowerCase();
  return /^(javascript|vbscript|data:text\/html|data:image\/svg)/.test(scheme);
}

/** Remove what a browser would load from another address, and so send data to. */
function withoutRemote(root: Document): boolean {
  let isChanged = false;
  for (const element of elements(root)) {
    for (const name of LOADED) {
      const value = element.getAttribute(name);
      if (value !== null && isElsewhere(value, name === 'srcset')) {
        element.removeAttribute(name);
        isChanged = true;
      }
    }
    const style = element.getAttribute('style');
    if (style !== null && /url\s*\(|image-set|\\/i.test(style)) {
      element.removeAttribute('style');
      isChanged = true;
    }
  }
  return isChanged;
}

/** Remove what a style rule or a script of the page applies to, and styles that leave an element's box. */
function withoutLooks(root: Document): boolean {
  let isChanged = false;
  for (const element of elements(root)) {
    for (const name of [...element.classList].filter(one => !mayBeClass(one))) {
      element.classList.remove(name);
      isChanged = true;
    }
    for (const name of element.getAttributeNames().filter(isHook)) {
      element.removeAttribute(name);
      isChanged = true;
    }
    const style = element.getAttribute('style');
    if (style !== null && !isHarmlessStyle(style)) {
      element.setAttribute('style', harmlessStyle(style));
      isChanged = true;
    }
  }
  return isChanged;
}

/** Attributes by which the page finds elements; the sanitizer creates the last one from an `id`. */
const HOOKS = ['id', 'name', 'data-jupyter-id'];

/** Whether an attribute is one of these, or names a command that the page would run. */
function isHook(name: string): boolean {
  return HOOKS.includes(name) || name.startsWith('data-commandlinker-');
}

function isElsewhere(value: string, isSet: boolean): boolean {
  const urls = isSet ? value.split(/[\s,]+/) : [value];
  return urls.some(text => {
    try {
      const url = new URL(text, document.baseURI);
      return /^(https?|ftp|wss?):$/.test(url.protocol)
        ? url.origin !== window.location.origin
        : false;
    } catch {
      return true;
    }
  });
}
