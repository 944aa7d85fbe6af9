/**
 * The last lines of an MCP server's log.
 */
import React from 'react';

import type { IServer } from '../../api/protocol';
import { LinkButton, VisibleText } from '../../ui/components/VisibleText';
import { useTrans } from '../../ui/context';
import { label } from '../../ui/text/visibleText';

/** The number of lines that are shown, and of characters in each: the server keeps more. */
const MAX_LINES = 200;
const MAX_LINE = 2000;

export interface IServerLogProps {
  server: IServer;
  onRefresh: () => Promise<void>;
}

export function ServerLog(props: IServerLogProps): JSX.Element | null {
  const trans = useTrans();
  const { server, onRefresh } = props;
  const { log } = server;
  const [isOpen, setOpen] = React.useState(false);
  const box = React.useRef<HTMLPreElement>(null);
  const text = log
    .slice(-MAX_LINES)
    .map(line => line.slice(0, MAX_LINE))
    .join('\n');
  React.useEffect(() => {
    box.current?.scrollTo?.(0, box.current.scrollHeight);
  }, [text, isOpen]);
  if (log.length === 0) {
    return null;
  }
  return (
    <details
      className="jp-AgentBox-details"
      onToggle={event => {
        setOpen(event.currentTarget.open);
      }}
    >
      <summary>
        {trans._n('Log (%1 line)', 'Log (%1 lines)', log.length)}
      </summary>
      {isOpen ? (
        <>
          <pre
            ref={box}
            tabIndex={0}
            role="log"
            aria-label={trans.__('Log of %1', label(server.name))}
          >
            <VisibleText text={text} />
          </pre>
          <LinkButton
            label={trans.__('Refresh')}
            onClick={() => void onRefresh()}
          />
        </>
      ) : null}
    </details>
  );
}
