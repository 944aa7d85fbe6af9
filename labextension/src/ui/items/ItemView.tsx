/**
 * One item of a turn: the agent's text, its code, or a message to it.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type {
  IAgentMessage,
  ICodeRun,
  IItemOutput,
  Item,
  ItemStatus,
  IToolCallItem,
  ReadTurn
} from '../../api/threads';
import { CodeView } from '../code/CodeView';
import { LinkButton } from '../components/VisibleText';
import { useCardContext, useTrans } from '../context';
import { useRecordedStatus } from '../hooks/useRecordedStatus';
import { useSignal } from '../hooks/useSignal';
import { label } from '../text/visibleText';
import { MarkdownView } from './MarkdownView';
import type { IMarkdownViewOptions } from './MarkdownView';

export interface IItemViewProps {
  output: IItemOutput;
  markdown: IMarkdownViewOptions;
  /** Inserts the code of the item's turn into the notebook; missing where there is no notebook. */
  onInsert?: () => void;
  /** Reads a turn from the server: the output of an item that was in progress may be outdated. */
  readTurn?: ReadTurn;
}

export function ItemView(props: IItemViewProps): JSX.Element {
  const { output, markdown } = props;
  const { item, isComplete } = output;
  switch (item.type) {
    case 'agent_message':
      return <Message {...props} item={item} />;
    case 'reasoning':
      return (
        <Reasoning text={item.text} isComplete={isComplete} {...{ markdown }} />
      );
    case 'code_run':
      return <CodeRun {...props} item={item} />;
    case 'tool_call':
      return <ToolCall {...props} item={item} />;
    case 'user_message':
    case 'notice':
      return <Line item={item} />;
  }
}

function Message(props: IItemViewProps & { item: IAgentMessage }): JSX.Element {
  const trans = useTrans();
  const { item, markdown, output, onInsert } = props;
  const isFinal = output.isAnswer || item.phase === 'final_answer';
  return (
    <div
      className={`jp-AgentBox-message ${isFinal ? 'jp-mod-final' : 'jp-mod-commentary'}`}
      role="group"
      aria-label={isFinal ? trans.__('Answer') : trans.__('Agent')}
      aria-busy={!output.isComplete}
    >
      {isFinal ? (
        <div className="jp-AgentBox-itemHead">
          <span className="jp-AgentBox-itemName">{trans.__('Answer')}</span>
          {onInsert && output.isComplete ? (
            <LinkButton
              label={trans.__('Insert as cells')}
              title={trans.__(
                'Insert the code that ran in this turn as cells below'
              )}
              onClick={onInsert}
            />
          ) : null}
        </div>
      ) : null}
      <Prose text={item.text} markdown={markdown} />
    </div>
  );
}

function Reasoning(props: {
  text: string;
  isComplete: boolean;
  markdown: IMarkdownViewOptions;
}): JSX.Element {
  const trans = useTrans();
  return (
    <details className="jp-AgentBox-details jp-AgentBox-reasoning">
      <summary>
        {props.isComplete ? trans.__('Reasoning') : trans.__('Reasoning…')}
      </summary>
      <Prose text={props.text} markdown={props.markdown} />
    </details>
  );
}

function Prose(props: {
  text: string;
  markdown: IMarkdownViewOptions;
}): JSX.Element {
  const { text, markdown } = props;
  const host = React.useRef<HTMLDivElement>(null);
  const view = React.useRef<MarkdownView | null>(null);
  React.useLayoutEffect(() => {
    if (!host.current) {
      return;
    }
    const node = host.current;
    const made = new MarkdownView(node, markdown);
    view.current = made;
    return () => {
      made.dispose();
      node.replaceChildren();
    };
  }, [markdown]);
  React.useLayoutEffect(() => {
    void view.current?.show(text);
  }, [text, markdown]);
  return (
    <div
      ref={host}
      className="jp-AgentBox-prose jp-RenderedHTMLCommon jp-RenderedMarkdown"
    />
  );
}

/** The state of code or of a call, and whether it waits for a person. */
type State = Exclude<ItemStatus, 'in_progress'> | 'running' | 'waiting';

function CodeRun(props: IItemViewProps & { item: ICodeRun }): JSX.Element {
  const trans = useTrans();
  const { item, output } = props;
  const [state, isOld] = useItemState(
    props,
    call => call.thread_id === output.threadId
  );
  return (
    <div role="group" aria-label={trans.__('Agent’s code')}>
      <Head name={trans.__('Code')} state={state} />
      {state === 'waiting' ? null : (
        // While it waits, the card shows the code.
        <CodeView code={item.code} name={trans.__('Agent’s code')} />
      )}
      {item.error && state !== 'waiting' && state !== 'failed' ? (
        // The error of failed code is an output of the cell.
        <p className="jp-AgentBox-itemError">{label(item.error, 300)}</p>
      ) : null}
      {isOld ? (
        <p className="jp-AgentBox-notice" role="note">
          {trans.__(
            'The turn went on while this page was not connected. Run %agent show in a cell to see the rest.'
          )}
        </p>
      ) : null}
    </div>
  );
}

function ToolCall(
  props: IItemViewProps & { item: IToolCallItem }
): JSX.Element {
  const { item } = props;
  const [state] = useItemState(props, () => false);
  const name = `${item.server}.${item.tool}`;
  return <Head name={label(name)} state={state} />;
}

function Head(props: { name: string; state: State }): JSX.Element {
  const trans = useTrans();
  const { name, state } = props;
  return (
    <div className="jp-AgentBox-itemHead">
      <span className="jp-AgentBox-itemName">{name}</span>
      <span className={`jp-AgentBox-itemState jp-mod-${state}`} role="status">
        {describeState(state, trans)}
      </span>
    </div>
  );
}

function Line({ item }: { item: Item & { text: string } }): JSX.Element {
  const trans = useTrans();
  return item.type === 'user_message' ? (
    <p className="jp-AgentBox-notice">
      <span className="jp-AgentBox-itemName">{trans.__('You:')}</span>{' '}
      {label(item.text, 500)}
    </p>
  ) : (
    <p className="jp-AgentBox-notice" role="note">
      {label(item.text, 500)}
    </p>
  );
}

/**
 * The state of an item, and whether its output is outdated. The requests on this page tell whether the item waits.
 */
function useItemState(
  props: IItemViewProps & { item: ICodeRun | IToolCallItem },
  isOurs: (call: { thread_id?: string | null }) => boolean
): [State, boolean] {
  const { item, output, readTurn } = props;
  const { model } = useCardContext();
  // The state of an item that has ended depends on no request.
  useSignal(model.changed, () => item.status === 'in_progress');
  const recorded = useRecordedStatus(
    item,
    output.turnId,
    model.changed,
    readTurn
  );
  if (item.status !== 'in_progress') {
    return [item.status, false];
  }
  if (recorded.status) {
    return [recorded.status, recorded.isOld];
  }
  const isWaiting = model.pending.some(({ id, call }) =>
    item.request_id === null
      ? isOurs(call) && call.tool === 'run_code'
      : id === item.request_id
  );
  return [isWaiting ? 'waiting' : 'running', false];
}

function describeState(state: State, trans: TranslationBundle): string {
  const texts: Record<State, string> = {
    waiting: trans.__('waiting for your decision'),
    running: trans.__('running…'),
    completed: trans.__('completed'),
    failed: trans.__('failed'),
    declined: trans.__('declined'),
    interrupted: trans.__('interrupted')
  };
  return texts[state] ?? label(state, 20);
}
