/**
 * An MCP server: its state in words and color, its actions, its tools and its log.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { ServerAction } from '../../api/queries';
import type { IServer, ISignInPage, ServerState } from '../../api/protocol';
import type { IFeatureLock } from '../../api/rules';
import type { IServersModel } from '../../internalTokens';
import { useTrans } from '../../ui/context';
import { DecisionButton } from '../../ui/guarded/DecisionButton';
import { Guarded, GuardedCard } from '../../ui/guarded/GuardedCard';
import { useDoing } from '../../ui/hooks/useDoing';
import { useKeptFocus } from '../../ui/hooks/useKeptFocus';
import { LockedButton, useLock, useWhyLocked } from '../../ui/locks';
import { label } from '../../ui/text/visibleText';
import { ServerLog } from './ServerLog';
import { SignIn } from './SignIn';
import { ToolList } from './ToolList';
import type { ITrying } from './TryTool';

export interface IServerProps {
  server: IServer;
  servers: IServersModel;
  trying: ITrying | null;
}

export function Server(props: IServerProps): JSX.Element {
  const trans = useTrans();
  const { server, servers, trying } = props;
  const { run, isBusy, failure } = useDoing(server.name);
  const lock = useLock('local_servers');
  const why = useWhyLocked('local_servers');
  const [page, setPage] = React.useState<Pick<ISignInPage, 'address'> | null>(
    null
  );
  const [isCancelled, setCancelled] = React.useState(false);
  const wantsSignIn = server.state === 'needs_sign_in';
  const hasFailed = Boolean(server.sign_in_error);
  React.useEffect(() => {
    if (!wantsSignIn || hasFailed) {
      setPage(null); // its address was good for one sign-in
    }
  }, [wantsSignIn, hasFailed]);
  const line = React.useRef<HTMLDivElement>(null);
  useKeptFocus(line);
  const signIn = async (): Promise<void> => {
    setPage(null); // what was shown is given up by the next
    setCancelled(false);
    setPage(
      server.sign_in_url
        ? { address: server.sign_in_url }
        : await servers.beginSignIn(server.name)
    );
  };
  const cancel = async (): Promise<void> => {
    line.current?.querySelector('button')?.focus(); // what has it goes
    setPage(null);
    if (server.sign_in_url) {
      return; // nothing was begun here
    }
    await servers.cancelSignIn(server.name);
    setCancelled(true);
  };
  const review = async (): Promise<void> => {
    const id = await servers.review(server.name);
    trying?.showRequest(id); // who wants to see it need not look for it
  };
  const name = label(server.name);
  const locked = lockedOf(server, lock, trans);
  const buttons =
    locked.length > 0
      ? []
      : buttonsOf(server, servers, { signIn, review }, trans);
  const changed = servers.list?.changed_tools?.[server.name] ?? 0;
  const isOld = server.last_error !== '' && server.last_error !== server.error;
  return (
    <>
      <GuardedCard
        ref={line}
        className="jp-AgentBox-bareCard"
        isGuarded
        aria-label={trans.__('Server %1', name)}
      >
        <Guarded>
          <div className="jp-AgentBox-serverLine">
            <span
              className={`jp-AgentBox-dot jp-mod-${server.state.replaceAll('_', '-')}`}
              aria-hidden="true"
            />
            <span className="jp-AgentBox-name">
              <bdi>{name}</bdi>
            </span>
            <span className="jp-AgentBox-serverState">
              {describeState(server.state, trans)}
            </span>
            <span className="jp-AgentBox-serverButtons">
              {locked.map(({ text, what }) => (
                <LockedButton key={text} label={text} name={what} why={why} />
              ))}
              {buttons.map(({ text, what, action }) => (
                <DecisionButton
                  key={`${server.state} ${text}`} // another state puts another button in its place
                  kind="neutral"
                  label={text}
                  name={what}
                  isBusy={isBusy}
                  onActivate={() => {
                    run(action);
                  }}
                />
              ))}
            </span>
          </div>
        </Guarded>
      </GuardedCard>
      <div className="jp-AgentBox-serverFacts">{facts(server, trans)}</div>
      {changed > 0 ? (
        <p className="jp-AgentBox-changedTools">
          {trans._n(
            '%1 tool is new or changed since somebody looked',
            '%1 tools are new or changed since somebody looked',
            changed
          )}
        </p>
      ) : null}
      {server.state === 'needs_trust' ? (
        <p className="jp-AgentBox-serverFacts">
          {trans.__(
            '%1 shows what it would start. Nothing of it runs before you trust it.',
            trans.__('Review…')
          )}
        </p>
      ) : null}
      {[errorOf(server), failure].filter(Boolean).map(text => (
        <p key={text} className="jp-AgentBox-error">
          {shortened(text)}
        </p>
      ))}
      <div role="status">
        {server.sign_in_error ? (
          <p className="jp-AgentBox-error">
            {label(server.sign_in_error, 500)}
          </p>
        ) : null}
        {isCancelled && wantsSignIn ? (
          <p className="jp-AgentBox-note">
            {trans.__('You cancelled the sign-in.')}
          </p>
        ) : null}
      </div>
      {page && wantsSignIn ? (
        <SignIn
          key={page.address}
          page={page}
          server={server.name}
          isOfHub={Boolean(server.sign_in_url)}
          onCancel={() => {
            run(cancel);
          }}
        />
      ) : null}
      {isOld ? (
        <p className="jp-AgentBox-serverFacts">
          {trans.__('The last error: %1', label(server.last_error, 300))}
        </p>
      ) : null}
      <ToolList {...props} />
      <ServerLog server={server} onRefresh={() => servers.refresh()} />
    </>
  );
}

/** The problem of a server. If it is not trusted, its state says so in words that fit the panel. */
function errorOf(server: IServer): string {
  return server.state === 'needs_trust' ? '' : server.error;
}

/** An error in one line; its last line says where to look, and is not cut off. */
function shortened(error: string): string {
  const end = error.lastIndexOf('\n');
  return end === -1
    ? label(error, 500)
    : `${label(error.slice(0, end), 500)} ${label(error.slice(end), 500)}`;
}

interface IButton {
  text: string;
  /** The label for screen readers. */
  what: string;
  action: () => Promise<void>;
}

/** The actions that make sense in the server's state. */
function buttonsOf(
  server: IServer,
  servers: IServersModel,
  { signIn, review: look }: Record<'signIn' | 'review', () => Promise<void>>,
  trans: TranslationBundle
): IButton[] {
  const name = label(server.name);
  const does = (action: ServerAction) => () => servers.run(server.name, action);
  const start: IButton = {
    text: trans.__('Start'),
    what: trans.__('Start %1', name),
    action: does('start')
  };
  const stop: IButton = {
    text: trans.__('Stop'),
    what: trans.__('Stop %1', name),
    action: does('stop')
  };
  const restart: IButton = {
    text: trans.__('Restart'),
    what: trans.__('Restart %1', name),
    action: does('restart')
  };
  const review: IButton = {
    text: trans.__('Review…'),
    what: trans.__('Review %1', name),
    action: look
  };
  const signOut: IButton = {
    text: trans.__('Sign out'),
    what: trans.__('Sign out of %1', name),
    action: () => servers.signOut(server.name)
  };
  const distrust: IButton = {
    text: trans.__('Stop trusting'),
    what: trans.__('Stop trusting %1', name),
    action: () => servers.distrust(server.name)
  };
  const enter: IButton = {
    text: trans.__('Sign in'),
    what: trans.__('Sign in to %1', name),
    action: signIn
  };
  const leave = [
    ...(server.is_signed_in ? [signOut] : []),
    ...((server.is_trusted ?? server.is_of_project) ? [distrust] : [])
  ];
  const buttons: Partial<Record<ServerState, IButton[]>> = {
    needs_trust: [review],
    // Where rights are missing, who is signed in has to sign out first. The Hub does not say that somebody has signed in.
    needs_sign_in: server.sign_in_url ? [enter, start] : [enter, ...leave],
    // One that is disabled in its configuration says so, and cannot be started.
    stopped: server.error ? [] : [start, ...leave],
    starting: [stop],
    running: [stop, restart, ...leave],
    failed: [start, ...leave]
  };
  return buttons[server.state] ?? [];
}

/** What the site turned off: trusting a server of the project, and starting one of the user's own. */
function lockedOf(
  server: IServer,
  lock: IFeatureLock | null,
  trans: TranslationBundle
): Pick<IButton, 'text' | 'what'>[] {
  const name = label(server.name);
  if (lock && server.state === 'needs_trust') {
    return [{ text: trans.__('Review…'), what: trans.__('Review %1', name) }];
  }
  return lock?.message && server.error.startsWith(lock.message)
    ? [{ text: trans.__('Start'), what: trans.__('Start %1', name) }]
    : [];
}

function facts(server: IServer, trans: TranslationBundle): string {
  const parts = [server.transport];
  if (server.is_of_project) {
    parts.push(trans.__('this project’s .mcp.json'));
  }
  if (server.tool_count !== null) {
    parts.push(trans._n('%1 tool', '%1 tools', server.tool_count));
  }
  if (server.calls > 0) {
    parts.push(trans._n('%1 call', '%1 calls', server.calls));
  }
  if (server.protocol_version) {
    parts.push(trans.__('MCP %1', label(server.protocol_version, 30)));
  }
  return parts.join(' · ');
}

function describeState(state: ServerState, trans: TranslationBundle): string {
  const texts: Record<ServerState, string> = {
    needs_configuration: trans.__('needs configuration'),
    needs_trust: trans.__('not trusted'),
    needs_sign_in: trans.__('you have to sign in'),
    stopped: trans.__('stopped (starts on first use)'),
    starting: trans.__('starting…'),
    running: trans.__('running'),
    failed: trans.__('failed')
  };
  return texts[state] ?? state;
}
