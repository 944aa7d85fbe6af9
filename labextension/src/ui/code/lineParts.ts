/**
 * The parts of a difference's lines: what is changed in them, and as much around it as tells where that is.
 */
import type { IDiffLine } from './lineDiff';

/** A part of a line. A gap stands for a text that is left out, because it is the same before and after. */
export type LinePart =
  { kind: 'same' | 'changed'; text: string } | { kind: 'gap' };

/** A line with its parts. */
export interface IPartedLine extends IDiffLine {
  parts: LinePart[];
}

/** The maximum number of characters of a line that is shown whole, though it is the same in part. */
const MAX_LINE = 200;

/** The number of characters around a change that are shown with it. */
const CONTEXT = 60;

/** Divide lines into parts. Where lines were removed and added in one place, each is compared with its counterpart. */
export function withParts(lines: readonly IDiffLine[]): IPartedLine[] {
  const counterparts = counterpartsOf(lines);
  return lines.map(line => ({
    ...line,
    parts: partsOf(line, counterparts.get(line))
  }));
}

function counterpartsOf(
  lines: readonly IDiffLine[]
): ReadonlyMap<IDiffLine, string> {
  const found = new Map<IDiffLine, string>();
  let [removed, added]: IDiffLine[][] = [[], []];
  const pair = (): void => {
    removed.slice(0, added.length).forEach((line, index) => {
      found.set(line, added[index].text);
      found.set(added[index], line.text);
    });
    [removed, added] = [[], []];
  };
  for (const line of lines) {
    if (line.kind === 'same') {
      pair();
    } else {
      (line.kind === 'removed' ? removed : added).push(line);
    }
  }
  pair();
  return found;
}

function partsOf({ kind, text }: IDiffLine, other?: string): LinePart[] {
  if (kind === 'same' && text.length > MAX_LINE) {
    return [{ kind, text: text.slice(0, charactersTo(text, MAX_LINE)) }, GAP];
  }
  const start = other === undefined ? 0 : commonStart(text, other);
  const end = other === undefined ? 0 : commonEnd(text, other, start);
  if (start + end === 0) {
    return [{ kind: 'same', text }];
  }
  const isLong = Math.max(text.length, other?.length ?? 0) > MAX_LINE;
  const context = isLong ? CONTEXT : Infinity;
  const [from, to] = [start - context, text.length - end + context];
  const parts: LinePart[] = [
    {
      kind: 'same',
      text: text.slice(Math.max(0, charactersTo(text, from)), start)
    },
    { kind: 'changed', text: text.slice(start, text.length - end) },
    {
      kind: 'same',
      text: text.slice(text.length - end, charactersTo(text, to))
    }
  ];
  return [
    ...(from > 0 ? [GAP] : []),
    ...parts.filter(part => part.kind === 'gap' || part.text !== ''),
    ...(to < text.length ? [GAP] : [])
  ];
}

const GAP: LinePart = { kind: 'gap' };

/** The number of characters with which both texts begin. */
function commonStart(text: string, other: string): number {
  const most = Math.min(text.length, other.length);
  let count = 0;
  while (count < most && text[count] === other[count]) {
    count++;
  }
  return charactersTo(text, count);
}

/** The number of characters with which both texts end, after the first ones. */
function commonEnd(text: string, other: string, start: number): number {
  const most = Math.min(text.length, other.length) - start;
  let count = 0;
  while (
    count < most &&
    text[text.length - 1 - count] === other[other.length - 1 - count]
  ) {
    count++;
  }
  const place = text.length - count;
  return count > 0 && charactersTo(text, place) < place ? count - 1 : count;
}

/** The same number, or one less where it would cut a character of two code units in half. */
function charactersTo(text: string, count: number): number {
  const isLow = /^[\udc00-\udfff]/.test(text.charAt(count));
  const isHigh = /[\ud800-\udbff]$/.test(text.charAt(count - 1));
  return isLow && isHigh ? count - 1 : count;
}
