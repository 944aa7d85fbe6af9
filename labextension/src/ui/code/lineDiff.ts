/**
 * The difference between two texts, line by line.
 */

/** A line of a difference. `before` and `after` are its numbers in the two texts, from 1. */
export interface IDiffLine {
  kind: 'same' | 'removed' | 'added';
  text: string;
  before: number | null;
  after: number | null;
}

/** The maximum number of comparisons; beyond it, everything is shown as removed and added. */
const MAX_COMPARISONS = 4_000_000;

/** Compare two texts, and keep as many equal lines in the same order as possible. */
export function lineDiff(before: string, after: string): IDiffLine[] {
  const [a, b] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) {
    start++;
  }
  let end = 0;
  while (
    end < a.length - start &&
    end < b.length - start &&
    a[a.length - 1 - end] === b[b.length - 1 - end]
  ) {
    end++;
  }
  const lines = new LineList();
  a.slice(0, start).forEach(text => {
    lines.add('same', text);
  });
  compare(
    a.slice(start, a.length - end),
    b.slice(start, b.length - end),
    lines
  );
  a.slice(a.length - end).forEach(text => {
    lines.add('same', text);
  });
  return lines.all;
}

/** The changed lines with some around them; `null` stands for omitted lines. */
export function withContext<Line extends IDiffLine>(
  lines: readonly Line[],
  context: number
): (Line | null)[] {
  const isNear = lines.map((_, index) =>
    lines
      .slice(Math.max(0, index - context), index + context + 1)
      .some(({ kind }) => kind !== 'same')
  );
  const shown: (Line | null)[] = [];
  lines.forEach((line, index) => {
    if (isNear[index]) {
      shown.push(line);
    } else if (shown[shown.length - 1] !== null) {
      shown.push(null);
    }
  });
  return shown;
}

/** Numbers lines as they are added. */
class LineList {
  readonly all: IDiffLine[] = [];

  add(kind: IDiffLine['kind'], text: string): void {
    this.all.push({
      kind,
      text,
      before: kind === 'added' ? null : ++this._before,
      after: kind === 'removed' ? null : ++this._after
    });
  }

  private _after = 0;
  private _before = 0;
}

/** The longest common subsequence, by the table of its lengths. */
function compare(
  a: readonly string[],
  b: readonly string[],
  lines: LineList
): void {
  const width = b.length + 1;
  const isTooMuch = a.length * b.length > MAX_COMPARISONS;
  const lengths = new Uint32Array(isTooMuch ? 0 : (a.length + 1) * width);
  const at = (i: number, j: number): number => lengths[i * width + j];
  for (let i = a.length - 1; i >= 0 && !isTooMuch; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        a[i] === b[j]
          ? at(i + 1, j + 1) + 1
          : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.add('same', a[i]);
      i++;
      j++;
    } else if (
      i < a.length &&
      (j === b.length || isTooMuch || at(i + 1, j) >= at(i, j + 1))
    ) {
      lines.add('removed', a[i++]);
    } else {
      lines.add('added', b[j++]);
    }
  }
}
