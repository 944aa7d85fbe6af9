/**
 * What an edit changes, line by line.
 */
import React from 'react';

import { useTrans } from '../context';
import { VisibleText } from '../components/VisibleText';
import { lineDiff, withContext } from './lineDiff';

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
  const lines = React.useMemo(
    () => withContext(lineDiff(before, after), CONTEXT),
    [before, after]
  );
  if (before === after) {
    return <p className="jp-AgentBox-changes">{trans.__('No changes')}</p>;
  }
  const kinds = {
    same: '',
    removed: trans.__('Removed:'),
    added: trans.__('Added:')
  };
  return (
    <figure className="jp-AgentBox-difference">
      <figcaption>{caption}</figcaption>
      <div
        className="jp-AgentBox-diffLines"
        role="group"
        aria-label={caption}
        tabIndex={0}
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
                <VisibleText text={line.text} />
              </code>
            </div>
          ) : (
            <div key={index} className="jp-mod-gap" aria-hidden="true">
              ⋯
            </div>
          )
        )}
      </div>
    </figure>
  );
}
