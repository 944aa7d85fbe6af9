/**
 * What an edit changes, line by line.
 */
import React from 'react';

import { useTrans } from '../context';
import { useUnseenReport } from '../components/Unseen';
import { VisibleText } from '../components/VisibleText';
import { useSeenPart } from '../hooks/useSeenPart';
import { lineDiff, withContext } from './lineDiff';
import { withParts } from './lineParts';
import type { LinePart } from './lineParts';

/** The number of lines around a change that are shown with it. */
const CONTEXT = 2;

const SIGNS = { same: ' ', removed: '−', added: '+' } as const;

export interface IDifferenceProps {
  before: string;
  after: string;
  /** A description of the lines; by default, of a person's changes. */
  caption?: string;
}

/** Two colors, and symbols for people who cannot distinguish them. */
export function Difference(props: IDifferenceProps): JSX.Element {
  const { before, after } = props;
  const trans = useTrans();
  const caption = props.caption ?? trans.__('Your changes');
  return before === after ? (
    <p className="jp-AgentBox-changes">{trans.__('No changes')}</p>
  ) : (
    <figure className="jp-AgentBox-difference">
      <figcaption>{caption}</figcaption>
      <DiffLines before={before} after={after} name={caption} />
    </figure>
  );
}

export interface IDiffLinesProps {
  before: string;
  after: string;
  /** What a screen reader calls the box. */
  name: string;
}

/** The lines of a difference, in a box that scrolls if they are many. */
export function DiffLines(props: IDiffLinesProps): JSX.Element {
  const trans = useTrans();
  const { before, after, name } = props;
  const lines = React.useMemo(
    () => withContext(withParts(lineDiff(before, after)), CONTEXT),
    [before, after]
  );
  const text = React.useMemo(
    () => lines.map(line => line && textOf(line.parts)).join('\n'),
    [lines]
  );
  const box = React.useRef<HTMLDivElement>(null);
  const [seen, onScroll] = useSeenPart(box, { text, isFilled: true });
  useUnseenReport(name, Math.ceil((1 - seen) * text.length));
  const kinds = {
    same: '',
    removed: trans.__('Removed:'),
    added: trans.__('Added:')
  };
  return (
    <div
      ref={box}
      className="jp-AgentBox-diffLines"
      role="group"
      aria-label={name}
      tabIndex={0}
      onScroll={onScroll}
    >
      {lines.map((line, index) =>
        line ? (
          <div key={index} className={`jp-mod-${line.kind}`}>
            <span className="jp-AgentBox-diffNumber" aria-hidden="true">
              {line.after ?? line.before}
            </span>
            <span className="jp-AgentBox-diffSign" aria-hidden="true">
              {SIGNS[line.kind]}
            </span>
            <span className="jp-AgentBox-heard">{kinds[line.kind]}</span>
            <code>
              {line.parts.map((part, at) => (
                <Part key={at} part={part} />
              ))}
            </code>
          </div>
        ) : (
          <div key={index} className="jp-mod-gap" aria-hidden="true">
            ⋯
          </div>
        )
      )}
    </div>
  );
}

function Part({ part }: { part: LinePart }): JSX.Element {
  switch (part.kind) {
    case 'same':
      return <VisibleText text={part.text} />;
    case 'changed':
      return (
        <mark>
          <VisibleText text={part.text} />
        </mark>
      );
    case 'gap':
      return (
        <span className="jp-mod-gap" aria-hidden="true">
          ⋯
        </span>
      );
  }
}

function textOf(parts: readonly LinePart[]): string {
  return parts.map(part => (part.kind === 'gap' ? '' : part.text)).join('');
}
