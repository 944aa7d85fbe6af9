/**
 * The threads of agents: the state of each, and what a person can do with it.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IThread, ThreadState } from '../../api/threads';
import type { IThreadsModel } from '../../internalTokens';
import { LinkButton } from '../../ui/components/VisibleText';
import { useTrans } from '../../ui/context';
import { useDoing } from '../../ui/hooks/useDoing';
import type { IDoing } from '../../ui/hooks/useDoing';
import { useSignal } from '../../ui/hooks/useSignal';
import { LockedNote, useLock } from '../../ui/locks';
import { label, tail } from '../../ui/text/visibleText';
import { threadName } from './threadDialogs';
import type { IThreadDialogs } from './threadDialogs';
import { localeOf } from '../../ui/text/language';

export interface IThreadListProps {
  threads: IThreadsModel;
  dialogs: IThreadDialogs;
}

export function ThreadList(props: IThreadListProps): JSX.Element {
  const trans = useTrans();
  const { threads } = props;
  useSignal(threads.changed);
  const isOff = useLock('agents') !== null;
  const all = threads.threads ?? [];
  const current = all.filter(thread => !thread.is_archived);
  const archived = all.filter(thread => thread.is_archived);
  return (
    <section
      className="jp-AgentBox-threads"
      aria-label={trans.__('Agent threads')}
    >
      <LockedNote feature="agents" />
      <LockedNote feature="models" />
      {threads.threads && current.length === 0 && !isOff ? <Empty /> : null}
      <Rows {...props} list={current} />
      {threads.showsArchived ? (
        <>
          <h4>{trans.__('Archived')}</h4>
          {archived.length === 0 ? (
            <p className="jp-AgentBox-empty">
              {trans.__('No threads are archived.')}
            </p>
          ) : null}
          <Rows {...props} list={archived} />
        </>
      ) : null}
      <div className="jp-AgentBox-actions">
        {threads.hasMore ? (
          <LinkButton
            label={trans.__('Load more')}
            onClick={() => {
              void threads.loadMore();
            }}
          />
        ) : null}
        {threads.threads ? (
          <LinkButton
            label={
              threads.showsArchived
                ? trans.__('Hide archived threads')
                : trans.__('Show archived threads')
            }
            isPressed={threads.showsArchived}
            onClick={() => {
              void threads.setShowsArchived(!threads.showsArchived);
            }}
          />
        ) : null}
      </div>
    </section>
  );
}

function Rows(
  props: IThreadListProps & { list: readonly IThread[] }
): JSX.Element {
  const { list, ...rest } = props;
  return (
    <ul role="list">
      {list.map(thread => (
        <Row key={thread.id} {...rest} thread={thread} />
      ))}
    </ul>
  );
}

function Empty(): JSX.Element {
  const trans = useTrans();
  return (
    <p className="jp-AgentBox-empty">
      {trans.__(
        'No agent has been asked anything yet. To begin, write “%1” in the first line of a notebook cell and what you want below it, and run the cell.',
        '%%agent'
      )}
    </p>
  );
}

interface IRowProps extends IThreadListProps {
  thread: IThread;
}

function Row(props: IRowProps): JSX.Element {
  const trans = useTrans();
  const { thread } = props;
  const name = threadName(thread, trans);
  const doing = useDoing(thread.id);
  return (
    <li className="jp-AgentBox-thread" aria-label={name}>
      <div className="jp-AgentBox-serverLine">
        <span
          className={`jp-AgentBox-dot jp-mod-${thread.state}`}
          aria-hidden="true"
        />
        <span className="jp-AgentBox-threadName">
          <bdi>{name}</bdi>
        </span>
        <span className="jp-AgentBox-serverState">
          {describeState(thread.state, trans)}
        </span>
      </div>
      <div className="jp-AgentBox-threadBody">
        <div className="jp-AgentBox-threadFacts">{facts(thread, trans)}</div>
        {thread.last_prompt ? (
          <p
            className="jp-AgentBox-lastPrompt"
            title={label(thread.last_prompt, 1000)}
          >
            {trans.__('“%1”', label(thread.last_prompt, 160))}
          </p>
        ) : null}
        {thread.turn_id !== null ? (
          <Working {...props} turnId={thread.turn_id} doing={doing} />
        ) : null}
        <Actions {...props} doing={doing} />
        <div role="alert">
          {doing.failure ? (
            <p className="jp-AgentBox-error">{doing.failure}</p>
          ) : null}
        </div>
      </div>
    </li>
  );
}

/** The actions while the agent works. */
function Working(
  props: IRowProps & { turnId: string; doing: IDoing }
): JSX.Element {
  const trans = useTrans();
  const { threads, turnId, doing } = props;
  const [text, setText] = React.useState('');
  const [sent, setSent] = React.useState('');
  const send = (event: React.FormEvent): void => {
    event.preventDefault();
    const words = text.trim();
    if (words) {
      doing.run(async () => {
        await threads.steer(turnId, words);
        setText('');
        setSent(words);
      });
    }
  };
  return (
    <form className="jp-AgentBox-steer" onSubmit={send}>
      <input
        type="text"
        className="jp-AgentBox-field"
        aria-label={trans.__('Message to the agent while it works')}
        placeholder={trans.__('Tell the agent something…')}
        value={text}
        onChange={event => {
          setText(event.target.value);
        }}
      />
      <button
        type="submit"
        className="jp-AgentBox-button"
        disabled={doing.isBusy}
      >
        {trans.__('Send')}
      </button>
      <div role="status" className="jp-AgentBox-sent">
        {sent ? trans.__('Sent: “%1”', label(sent, 160)) : null}
      </div>
    </form>
  );
}

function Actions(props: IRowProps & { doing: IDoing }): JSX.Element {
  const trans = useTrans();
  const { thread, threads, dialogs, doing } = props;
  const archive = thread.is_archived
    ? trans.__('Unarchive')
    : trans.__('Archive');
  const more: [string, () => Promise<void>][] = [
    [trans.__('Rename…'), () => dialogs.rename(thread)],
    [trans.__('Fork'), () => threads.fork(thread.id)],
    [
      archive,
      () => threads.update(thread.id, { is_archived: !thread.is_archived })
    ],
    [trans.__('Delete…'), () => dialogs.delete(thread)],
    [trans.__('What the model was sent'), () => dialogs.showMessages(thread)]
  ];
  return (
    <>
      <div className="jp-AgentBox-actions">
        {thread.turn_id !== null ? (
          <Stop turnId={thread.turn_id} threads={threads} doing={doing} />
        ) : null}
        {thread.notebook_path ? (
          <LinkButton
            label={trans.__('Go to notebook')}
            title={label(thread.notebook_path, 300)}
            onClick={() => {
              doing.run(() => dialogs.goToNotebook(thread));
            }}
          />
        ) : null}
      </div>
      <details className="jp-AgentBox-details">
        <summary>{trans.__('More')}</summary>
        <div className="jp-AgentBox-actions">
          {more.map(([text, action]) => (
            <LinkButton
              key={text}
              label={text}
              onClick={() => {
                doing.run(action);
              }}
            />
          ))}
        </div>
      </details>
    </>
  );
}

function Stop(props: {
  turnId: string;
  threads: IThreadsModel;
  doing: IDoing;
}): JSX.Element {
  const trans = useTrans();
  const { turnId, threads, doing } = props;
  return (
    <button
      type="button"
      className="jp-AgentBox-button jp-mod-reject"
      disabled={doing.isBusy}
      onClick={() => {
        doing.run(() => threads.stop(turnId));
      }}
    >
      {trans.__('Stop')}
    </button>
  );
}

function facts(thread: IThread, trans: TranslationBundle): string {
  const { usage, steps } = thread;
  const tokens = usage.input_tokens + usage.output_tokens;
  return [
    tail(thread.notebook_path, 40),
    trans._n('%1 step', '%1 steps', steps),
    trans._n(
      '%2 token',
      '%2 tokens',
      tokens,
      tokens.toLocaleString(localeOf(trans))
    )
  ]
    .filter(Boolean)
    .join(' · ');
}

function describeState(state: ThreadState, trans: TranslationBundle): string {
  const texts: Record<ThreadState, string> = {
    idle: trans.__('idle'),
    working: trans.__('working'),
    waiting: trans.__('waits for you'),
    failed: trans.__('failed')
  };
  return texts[state] ?? label(state, 20);
}
