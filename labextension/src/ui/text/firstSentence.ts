/**
 * The first sentence of a description.
 */

/** Characters in which the first sentence is looked for. */
const MAX_LOOKED_AT = 2000;

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' });

/** The first sentence of a text, in one line; lines that are only wrapped are joined. */
export function firstSentence(text: string): string {
  const [paragraph = ''] = text
    .trim()
    .slice(0, MAX_LOOKED_AT)
    .split(/\r?\n[ \t]*\r?\n/);
  const line = paragraph.replace(/[ \t\r\n]+/g, ' ');
  const [first] = segmenter.segment(line);
  return first?.segment.trim() ?? '';
}

/** Whether a text is no more than its first sentence. */
export function isOneSentence(text: string): boolean {
  return text.trim().replace(/[ \t\r\n]+/g, ' ') === firstSentence(text);
}
