/**
 * How markup and widgets of a kernel may look: as they like within their own box, and never like a part of the page.
 *
 * A class that a style rule of the page answers to can put an element over another one, or let clicks through it. So can
 * a position, or a margin that is less than nothing.
 */

/** Classes that Jupyter itself uses for outputs: tables of pandas, colors of terminals, code and diagrams. */
const CLASSES =
  /^(dataframe|tex2jax_ignore|widget-interact|ansi-[a-z0-9-]+|language-[\w+#-]+|\u037c\w+|jp-RenderedMermaid(-Details|-Summary)?)$/;

/** Properties that change nothing outside an element's box, whatever their value. */
const PROPERTIES =
  /^(color|background(-color)?|border(-(top|right|bottom|left))?(-(color|style|width))?|border-radius|border-collapse|border-spacing|caption-side|empty-cells|font(-(family|size|style|variant|weight|stretch))?|line-height|list-style(-(position|type))?|opacity|padding(-(top|right|bottom|left))?|text-(align|decoration|decoration-line|transform|overflow)|vertical-align|white-space|word-break|word-wrap|overflow-wrap|table-layout|(min-|max-)?(width|height)|margin(-(top|right|bottom|left))?|float|clear|display|overflow(-x|-y)?|flex(-(flow|direction|wrap|grow|shrink|basis))?|justify-content|align-(items|content|self))$/;

/** A size cannot be negative, so a difference is harmless. */
const SIZES = /^(min-|max-)?(width|height)$|^flex|^grid/;

/** Matches values that load something, or may do so. */
const OPAQUE =
  /url\s*\(|image\s*\(|image-set|src\s*\(|var\s*\(|env\s*\(|attr\s*\(|\\|\/\*/i;

/** Matches negative values, and sums that may be negative. */
const NEGATIVE = /(^|[\s,(/])-\s*[\d.]|calc|\b(min|max)\s*\(|clamp/i;

/** Whether an element may have a class. */
export function mayBeClass(name: string): boolean {
  return CLASSES.test(name);
}

/** Whether a property of markup may have a value. */
function mayBeStyle(property: string, value: string): boolean {
  return PROPERTIES.test(property) && mayBeValue(property, value);
}

/** Whether a value loads nothing and, if it moves an element, moves it over no other. */
export function mayBeValue(property: string, value: string): boolean {
  return !OPAQUE.test(value) && (SIZES.test(property) || !NEGATIVE.test(value));
}

/** The permitted declarations of a style attribute. */
export function harmlessStyle(style: string): string {
  return declarations(style)
    .filter(([property, value]) => mayBeStyle(property, value))
    .map(([property, value]) => `${property}: ${value}`)
    .join('; ');
}

/** Whether all declarations of a style attribute are permitted. */
export function isHarmlessStyle(style: string): boolean {
  return declarations(style).every(([property, value]) =>
    mayBeStyle(property, value)
  );
}

/** What a browser could read as declarations; a part without a colon is invalid, and counts as forbidden. */
function declarations(style: string): [string, string][] {
  return style
    .split(';')
    .filter(part => part.trim() !== '')
    .map(part => {
      const at = part.indexOf(':');
      return at < 0
        ? ['', part]
        : [part.slice(0, at).trim().toLowerCase(), part.slice(at + 1).trim()];
    });
}
