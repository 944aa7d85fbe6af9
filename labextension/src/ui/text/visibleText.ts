/**
 * Untrusted text made wholly visible: what cannot be seen, or reorders what can, becomes an escape.
 */

/** A piece of a text; `isEscape` marks one that stands for a character that cannot be seen. */
export interface ISegment {
  text: string;
  isEscape: boolean;
}

/** What cannot be seen, or reorders what can, in parts of a character class. */
const HIDDEN_CLASSES = [
  // Control, format, surrogate, private and unassigned characters, and separators of lines. The format characters
  // are the bidirectional controls, the zero-width ones, the soft hyphen and the tags.
  '\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Cn}\\p{Zl}\\p{Zp}',
  // Blanks that are not a space.
  '\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u2800\\u3000',
  // Letters and marks without a shape: joiners, fillers and variation selectors.
  '\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u3164\\uffa0',
  '\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}'
];
// eslint-disable-next-line no-misleading-character-class -- each of these stands for itself
const HIDDEN = new RegExp(`[${HIDDEN_CLASSES.join('')}]`, 'gu');

// An emoji's own variation selector and joiner are part of a picture that can be seen.
const EMOJI_BEFORE =
  /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)$/u;
const EMOJI_AFTER = /^\p{Extended_Pictographic}/u;

/** A character that cannot be seen: where it is, how many code units it has, and what is shown in its place. */
export interface IHiddenCharacter {
  index: number;
  length: number;
  escape: string;
}

/** The characters of a text that cannot be seen. */
export function hiddenCharacters(text: string): IHiddenCharacter[] {
  return [...text.matchAll(HIDDEN)]
    .filter(({ index, 0: character }) => !isPlain(text, index, character))
    .map(({ index, 0: character }) => ({
      index,
      length: character.length,
      escape: escape(character)
    }));
}

/** Split a text into what can be shown as it is and escapes for what cannot. */
export function segments(text: string): ISegment[] {
  const found: ISegment[] = [];
  let end = 0;
  for (const { index, length, escape } of hiddenCharacters(text)) {
    if (index > end) {
      found.push({ text: text.slice(end, index), isEscape: false });
    }
    found.push({ text: escape, isEscape: true });
    end = index + length;
  }
  if (end < text.length) {
    found.push({ text: text.slice(end), isEscape: false });
  }
  return found;
}

/** Whether a text has a character that cannot be seen. */
export function hasHidden(text: string): boolean {
  return segments(text).some(segment => segment.isEscape);
}

/** The text with escapes in place of what cannot be seen, for places that take plain strings only. */
export function visible(text: string): string {
  return segments(text)
    .map(segment => segment.text)
    .join('');
}

/** The text in one line and at most `length` characters long, for labels. */
export function label(text: string, length = 120): string {
  // Only what a person sees as a blank becomes one; what cannot be seen becomes an escape.
  const line = visible(text.replace(/[ \t\r\n]+/g, ' ').replace(/^ | $/g, ''));
  if (line.length <= length) {
    return line;
  }
  // Enough for any characters that a person could tell apart; a whole megabyte would take long.
  const start = line.slice(0, length * 20);
  const characters = graphemes(start);
  return characters.length > length || start.length < line.length
    ? characters.slice(0, length - 1).join('') + '…'
    : line;
}

/** The text in one line and its end, at most `length` characters long: of a path, the file's name. */
export function tail(text: string, length: number): string {
  const line = label(text, Infinity);
  if (line.length <= length) {
    return line;
  }
  const characters = graphemes(line);
  return characters.length > length
    ? '…' + characters.slice(characters.length - length + 1).join('')
    : line;
}

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** What a person takes for one character each: an emoji may have many code units. */
function graphemes(text: string): string[] {
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

function isPlain(text: string, index: number, character: string): boolean {
  if (character === '\n' || character === '\t') {
    return true;
  }
  if (character === '\r') {
    return text[index + 1] === '\n';
  }
  if (character === '\u200d' || character === '\ufe0f') {
    const before = text.slice(Math.max(0, index - 2), index);
    const after = text.slice(index + 1, index + 3);
    return (
      EMOJI_BEFORE.test(before) &&
      (character === '\ufe0f' || EMOJI_AFTER.test(after))
    );
  }
  return false;
}

function escape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  return code > 0xffff ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`;
}
