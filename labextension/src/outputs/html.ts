/**
 * Says what markup would do in the page, and takes out what would speak to other addresses.
 *
 * What protects is the sanitizer; this looks at what went in and what came out.
 */

/** What was found in markup, in the order of how much it could do. */
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

/** What a browser loads at once, without a click. */
const LOADED = ['src', 'srcset', 'poster', 'background', 'data'];

/** The parts of a document that a browser adds, or that mean nothing in an output. */
const SILENT_TAGS = new Set(['html', 'head', 'body', 'title', 'meta']);

/** Markup that may be shown, and what is not in it. */
export interface IExamined {
  html: string;
  findings: Finding[];
}

/** Compare markup with what a sanitizer left of it; what it left loads nothing from elsewhere. */
export function examine(dirty: string, clean: string): IExamined {
  const found = new Set<Finding>();
  const before = parse(dirty);
  const after = parse(clean);
  const kept = new Set(elements(after).map(element => element.localName));
  for (const element of elements(before)) {
    inspect(element, found);
    const tag = element.localName;
    if (!kept.has(tag) && !SILENT_TAGS.has(tag) && !(tag in BY_TAG)) {
      found.add('other');
    }
  }
  const isRemote = withoutRemote(after);
  if (isRemote) {
    found.add('remote');
  }
  return {
    html: isRemote ? after.body.innerHTML : clean,
    findings: ORDER.filter(finding => found.has(finding))
  };
}

/** A document that runs and loads nothing. */
function parse(html: string): Document {
  return new DOMParser().parseFromString(html, 'text/html');
}

/** All elements, those inside templates too. */
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

/** Browsers leave out control characters and blanks before the scheme and line breaks in it. */
function runsCode(url: string): boolean {
  // eslint-disable-next-line no-control-regex
  const scheme = url.replace(/[\u0000-\u0020]/g, '').toLowerCase();
  return /^(javascript|vbscript|data:text\/html|data:image\/svg)/.test(scheme);
}

/** Take out what a browser would load from another address, and so tell it something. */
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
