/**
 * The MCP servers: the state and the log of each, and the problems in the configuration.
 */
import React from 'react';

import { useTrans } from '../../ui/context';
import type { IServerList } from '../../api/protocol';
import type { IServersModel } from '../../internalTokens';
import { useSignal } from '../../ui/hooks/useSignal';
import { visible } from '../../ui/text/visibleText';
import { FileProblem } from '../../ui/components/FileProblem';
import { Configuration } from './Configuration';
import { Server } from './Server';
import type { ITrying } from './TryTool';

export interface IServerListProps {
  servers: IServersModel;
  /** The context for trying a tool, if that is possible. */
  trying?: ITrying | null;
  /** Open a file in the editor, by its path below the server's root directory. */
  openDocument?: ((path: string) => void) | null;
}

export function ServerList(props: IServerListProps): JSX.Element {
  const trans = useTrans();
  const { servers, trying = null } = props;
  useSignal(servers.changed);
  const { list } = servers;
  return (
    <section
      className="jp-AgentBox-servers"
      aria-label={trans.__('MCP servers')}
    >
      {list?.problems.map((problem, index) => (
        <FileProblem key={index} problem={problem} />
      ))}
      {list && isEmpty(list) ? <Empty file={list.file?.path ?? ''} /> : null}
      <ul role="list">
        {list?.servers.map(server => (
          <li key={server.name} className="jp-AgentBox-server">
            <Server server={server} servers={servers} trying={trying} />
          </li>
        ))}
      </ul>
      {list ? <Configuration {...props} /> : null}
    </section>
  );
}

function isEmpty(list: IServerList): boolean {
  return list.servers.length === 0 && list.problems.length === 0;
}

/** A whole file, to paste; the kernel shows the same one. */
const EXAMPLE = `{"mcpServers": {
  "shop": {"command": "python", "args": ["-m", "jupyter_agentbox.demo.shop"]}
}}`;

/** Says where to write what. */
function Empty({ file }: { file: string }): JSX.Element {
  const trans = useTrans();
  return (
    <div className="jp-AgentBox-empty">
      <p>
        {file
          ? trans.__(
              'No MCP servers are configured. List them in %1, for example:',
              visible(file)
            )
          : trans.__(
              'No MCP servers are configured. List them in “mcp.json” in Jupyter’s configuration directory, for example:'
            )}
      </p>
      <pre>{EXAMPLE}</pre>
    </div>
  );
}
