/**
 * The MCP servers: how each is doing, what it wrote, and what is wrong with the configuration.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { useTrans } from '../../ui/context';
import type {
  IConfigurationProblem,
  IServer,
  IServerList,
  ServerState
} from '../../api/protocol';
import type { IServersModel } from '../../internalTokens';
import { label } from '../../ui/text/visibleText';
import { useDoing } from '../../ui/hooks/useDoing';
import { useSignal } from '../../ui/hooks/useSignal';
import { TextBlock } from '../../ui/components/VisibleText';

export interface IServerListProps {
  servers: IServersModel;
}

export function ServerList({ servers }: IServerListProps): JSX.Element {
  const trans = useTrans();
  useSignal(servers.changed);
  const { list } = servers;
  return (
    <section
      className="jp-AgentBox-servers"
      aria-label={trans.__('MCP servers')}
    >
      {list?.problems.map((problem, index) => (
        <Problem key={index} problem={problem} />
      ))}
      {list && isEmpty(list) ? <Empty /> : null}
      <ul role="list">
        {list?.servers.map(server => (
          <li key={server.name} className="jp-AgentBox-server">
            <Server
              server={server}
              onRestart={() => servers.restart(server.name)}
              onReview={() => servers.review(server.name)}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}

function isEmpty(list: IServerList): boolean {
  return list.servers.length === 0 && list.problems.length === 0;
}

interface IServerProps {
  server: IServer;
  onRestart: () => Promise<void>;
  onReview: () => Promise<void>;
}

function Server({ server, onRestart, onReview }: IServerProps): JSX.Element {
  const trans = useTrans();
  const { run, isBusy, failure } = useDoing();
  const needsTrust = server.state === 'needs_trust';
  const name = label(server.name);
  return (
    <>
      <div className="jp-AgentBox-serverLine">
        <span
          className={`jp-AgentBox-dot jp-mod-${server.state.replace('_', '-')}`}
          aria-hidden="true"
        />
        <span className="jp-AgentBox-name">
          <bdi>{name}</bdi>
        </span>
        <span className="jp-AgentBox-serverState">
          {describeState(server.state, trans)}
        </span>
        <button
          type="button"
          className="jp-AgentBox-link"
          aria-label={
            needsTrust
              ? trans.__('Review %1', name)
              : trans.__('Restart %1', name)
          }
          disabled={isBusy}
          onClick={() => {
            run(needsTrust ? onReview : onRestart);
          }}
        >
          {needsTrust ? trans.__('Review…') : restartLabel(isBusy, trans)}
        </button>
      </div>
      <div className="jp-AgentBox-serverFacts">{facts(server, trans)}</div>
      {[server.error, failure].filter(Boolean).map(text => (
        <p key={text} className="jp-AgentBox-error">
          {label(text, 500)}
        </p>
      ))}
      {server.log.length > 0 ? (
        <details className="jp-AgentBox-details">
          <summary>
            {trans._n('Log (%1 line)', 'Log (%1 lines)', server.log.length)}
          </summary>
          <TextBlock
            text={server.log.join('\n')}
            name={trans.__('Log of %1', name)}
          />
        </details>
      ) : null}
    </>
  );
}

function restartLabel(isBusy: boolean, trans: TranslationBundle): string {
  return isBusy ? trans.__('Restarting…') : trans.__('Restart');
}

function facts(server: IServer, trans: TranslationBundle): string {
  const parts = [server.transport];
  if (server.tool_count !== null) {
    parts.push(trans._n('%1 tool', '%1 tools', server.tool_count));
  }
  if (server.protocol_version) {
    parts.push(trans.__('MCP %1', label(server.protocol_version, 30)));
  }
  return parts.join(' · ');
}

function describeState(state: ServerState, trans: TranslationBundle): string {
  const texts: Record<ServerState, string> = {
    needs_configuration: trans.__('needs configuration'),
    needs_trust: trans.__('not trusted (this project’s .mcp.json)'),
    stopped: trans.__('stopped (starts on first use)'),
    starting: trans.__('starting…'),
    running: trans.__('running'),
    failed: trans.__('failed')
  };
  return texts[state] ?? state;
}

interface IProblemProps {
  problem: IConfigurationProblem;
}

function Problem({ problem }: IProblemProps): JSX.Element {
  const trans = useTrans();
  const { path, message, line, column } = problem;
  const place =
    line === null
      ? label(path, 200)
      : trans.__('%1, line %2, column %3', label(path, 200), line, column ?? 1);
  return (
    <div className="jp-AgentBox-problem" role="note">
      <span className="jp-AgentBox-name">{place}</span>
      <p>{label(message, 500)}</p>
    </div>
  );
}

function Empty(): JSX.Element {
  const trans = useTrans();
  return (
    <p className="jp-AgentBox-empty">
      {trans.__(
        'No MCP servers are configured. Add them to “mcp.json” in Jupyter’s configuration directory.'
      )}
    </p>
  );
}
