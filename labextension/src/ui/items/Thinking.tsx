/**
 * A line that says that the agent's model was asked and has not answered yet.
 */
import React from 'react';

import { useTrans } from '../context';
import { useTick } from '../hooks/useTick';

/** Milliseconds before the line comes: between two steps there is often less. */
const DELAY = 500;

/** Seconds from which on their number is said. */
const LONG = 3;

/** Counts from when it is first shown. */
export function Thinking(): JSX.Element {
  const trans = useTrans();
  const [start] = React.useState(Date.now);
  const [isShown, setShown] = React.useState(false);
  React.useEffect(() => {
    const timer = window.setTimeout(() => {
      setShown(true);
    }, DELAY);
    return () => {
      window.clearTimeout(timer);
    };
  }, []);
  useTick(isShown);
  const seconds = Math.floor((Date.now() - start) / 1000);
  return (
    <div className="jp-AgentBox-thinking">
      <span role="status">{isShown ? trans.__('Thinking…') : null}</span>
      {isShown && seconds >= LONG ? (
        // A screen reader would say each of them.
        <span aria-hidden="true">{trans.__('%1 s', seconds)}</span>
      ) : null}
    </div>
  );
}
