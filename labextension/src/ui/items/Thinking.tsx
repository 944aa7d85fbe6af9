/**
 * A line that says that the agent's model has not answered yet.
 */
import React from 'react';

import { useTrans } from '../context';
import { useTick } from '../hooks/useTick';

/** Milliseconds before the line appears. The pause between two steps is often shorter. */
const DELAY = 500;

/** From this many seconds on, the line shows how long the model has been thinking. */
const LONG = 3;

/** Counts the seconds since the component was mounted. */
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
        // Otherwise a screen reader would read every second aloud.
        <span aria-hidden="true">{trans.__('%1 s', seconds)}</span>
      ) : null}
    </div>
  );
}
