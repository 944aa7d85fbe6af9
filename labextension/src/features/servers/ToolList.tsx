/**
 * The tools that an MCP server listed, with a search, some at a time. Their descriptions are the server's words.
 */
import React from 'react';

import type { IListedTool, IServer } from '../../api/protocol';
import type { IServersModel } from '../../internalTokens';
import { LinkButton } from '../../ui/components/VisibleText';
import { useTrans } from '../../ui/context';
import { label } from '../../ui/text/visibleText';
import { messageOf } from '../../ui/text/messages';
import { Tool } from './Tool';
import type { ITrying } from './TryTool';

/** The number of tools that are shown at first, and added at a time. */
const STEP = 50;
/** The number of tools from which on a search is useful. */
const FEW = 8;

export interface IToolListProps {
  server: IServer;
  servers: IServersModel;
  trying: ITrying | null;
}

/** The tools of a server, which are fetched when the list is opened. */
export function ToolList(props: IToolListProps): JSX.Element | null {
  const trans = useTrans();
  const { server } = props;
  const [isOpen, setOpen] = React.useState(false);
  if (server.tool_count === null) {
    return null;
  }
  return (
    <details
      className="jp-AgentBox-details"
      onToggle={event => {
        if (event.target === event.currentTarget) {
          setOpen(event.currentTarget.open);
        }
      }}
    >
      <summary>{trans._n('%1 tool', '%1 tools', server.tool_count)}</summary>
      {isOpen ? <OpenList {...props} /> : null}
    </details>
  );
}

function OpenList(props: IToolListProps): JSX.Element {
  const trans = useTrans();
  const { server, servers } = props;
  const [tools, failure] = useTools(server, servers);
  const [word, setWord] = React.useState('');
  const [most, setMost] = React.useState(STEP);
  const found = tools.filter(tool => isFound(tool, word));
  const left = found.length - most;
  return (
    <>
      {failure ? <p className="jp-AgentBox-error">{failure}</p> : null}
      {tools.length > FEW ? (
        <input
          type="search"
          className="jp-AgentBox-field jp-AgentBox-toolSearch"
          placeholder={trans.__('Search tools')}
          aria-label={trans.__('Search the tools of %1', label(server.name))}
          value={word}
          onChange={event => {
            setWord(event.target.value);
            setMost(STEP);
          }}
        />
      ) : null}
      {word ? (
        <p className="jp-AgentBox-serverFacts" role="status">
          {trans._n('%1 tool found', '%1 tools found', found.length)}
        </p>
      ) : null}
      <ul role="list" className="jp-AgentBox-tools">
        {found.slice(0, most).map(tool => (
          <li key={tool.name}>
            <Tool {...props} tool={tool} />
          </li>
        ))}
      </ul>
      {left > 0 ? (
        <LinkButton
          label={trans._n(
            'Show %1 more (%2 in total)',
            'Show %1 more (%2 in total)',
            Math.min(left, STEP),
            found.length
          )}
          onClick={() => {
            setMost(most + STEP);
          }}
        />
      ) : null}
    </>
  );
}

/** The tools as last listed by the server, or why they are unknown. */
function useTools(
  server: IServer,
  servers: IServersModel
): [readonly IListedTool[], string] {
  const [tools, setTools] = React.useState<readonly IListedTool[]>([]);
  const [failure, setFailure] = React.useState('');
  const { name } = server;
  // What the servers say may have changed: the list is asked for again, and stays meanwhile.
  const said = servers.list;
  React.useEffect(() => {
    let isWanted = true;
    servers.listTools(name).then(
      found => {
        if (isWanted) {
          setTools(found ?? []);
          setFailure('');
          lookAt(found ?? [], name, servers);
        }
      },
      (error: unknown) => {
        if (isWanted) {
          setFailure(messageOf(error, 300));
        }
      }
    );
    return () => {
      isWanted = false;
    };
  }, [servers, name, said]);
  return [tools, failure];
}

/**
 * Note which tools somebody has seen in the list, so that a change of them is told: at the first look all of them. Those
 * that are marked wait until they are opened.
 */
function lookAt(
  tools: readonly IListedTool[],
  server: string,
  servers: IServersModel
): void {
  const known = looked.get(server) ?? '';
  const seen = tools.filter(tool => !tool.mark);
  const now = seen.map(tool => tool.digest).join();
  if (seen.length > 0 && now !== known) {
    looked.set(server, now);
    const digests = Object.fromEntries(
      seen.map(tool => [tool.name, tool.digest])
    );
    // Where it may not be noted, changes are not marked.
    servers.lookAtTools(server, digests).catch(() => undefined);
  }
}

/** The tools of each server that were seen. */
const looked = new Map<string, string>();

function isFound({ name, title, description }: IListedTool, word: string) {
  const wanted = word.trim().toLowerCase();
  return [name, title, description].some(text =>
    text.toLowerCase().includes(wanted)
  );
}
