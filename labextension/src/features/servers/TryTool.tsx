/**
 * A call that a person makes to try a tool: a form, the request that it creates, and the result.
 */
import type { ISignal } from '@lumino/signaling';
import React from 'react';

import { RequestError } from '../../api/errors';
import { stringify } from '../../api/json';
import type { ICallEnd, IToolResult, IWholeTool } from '../../api/protocol';
import type { IApprovalModel, IServersModel } from '../../internalTokens';
import type { IArgumentError } from '../../ui/card/useSending';
import { LinkButton, TextBlock } from '../../ui/components/VisibleText';
import { useTrans } from '../../ui/context';
import { draftArguments, openDraft, switchMode } from '../../ui/form/draft';
import type { IDraft } from '../../ui/form/draft';
import { FormFields } from '../../ui/form/FormFields';
import { useRefusal, useWrong, whatIsWrong } from '../../ui/form/wrongFields';
import { PersonButton } from '../../ui/guarded/PersonButton';
import { label } from '../../ui/text/visibleText';
import { messageOf } from '../../ui/text/messages';

/** The elements in which a person types or chooses an argument. */
const FIELD = 'input, select, textarea';

/** The context for trying a tool, besides the servers. */
export interface ITrying {
  approvals: Pick<IApprovalModel, 'track'> & {
    readonly changed: ISignal<object, string | null>;
  };
  /** Show a request where it can be decided. */
  showRequest: (id: string) => void;
}

export interface ITryToolProps extends ITrying {
  server: string;
  tool: IWholeTool;
  servers: IServersModel;
  onClose: () => void;
}

export function TryTool(props: ITryToolProps): JSX.Element {
  const trans = useTrans();
  const { server, tool, servers } = props;
  const schema = tool.input_schema;
  const [draft, setDraft] = React.useState<IDraft>(() => openDraft({}, schema));
  const [id, setId] = React.useState<string | null>(null);
  const [error, setError] = React.useState<IArgumentError | null>(null);
  const [isBusy, setBusy] = React.useState(false);
  const read = draftArguments(draft, trans);
  const root = React.useRef<HTMLDivElement>(null);
  useFirstField(root);
  const { unplaced } = useWrong(schema, draft, error, trans);
  useRefusal(root, error, () => {
    whatIsWrong(root.current, draft.mode)?.focus();
  });
  const change = (next: IDraft): void => {
    setError(null); // it was about other arguments
    setDraft(next);
  };
  const ask = (): void => {
    if (!read.values) {
      return;
    }
    setBusy(true);
    setError(null);
    setId(null);
    servers
      .callTool(server, tool.name, read.values)
      .then(setId, (reason: unknown) => {
        const parameter =
          reason instanceof RequestError ? reason.parameter : null;
        setError({ message: messageOf(reason), parameter });
      })
      .finally(() => {
        setBusy(false);
      });
  };
  return (
    <div
      ref={root}
      className="jp-AgentBox-try"
      role="group"
      tabIndex={-1}
      aria-label={trans.__('Try %1', label(tool.name))}
    >
      <LinkButton
        label={
          draft.mode === 'form'
            ? trans.__('Edit as JSON')
            : trans.__('Edit as a form')
        }
        onClick={() => {
          const mode = draft.mode === 'form' ? 'json' : 'form';
          setDraft(switchMode(draft, mode, schema, trans));
        }}
      />
      {draft.mode === 'form' ? (
        <FormFields
          source={schema}
          draft={draft}
          error={error}
          onChange={change}
        />
      ) : (
        <textarea
          className="jp-AgentBox-field jp-mod-code"
          aria-label={trans.__('Arguments as JSON')}
          rows={5}
          spellCheck={false}
          value={draft.text}
          onChange={event => {
            change({ ...draft, text: event.target.value, problem: null });
          }}
        />
      )}
      {[draft.problem, read.error, ...unplaced].filter(Boolean).map(text => (
        <p key={text} className="jp-AgentBox-error" role="alert">
          {text}
        </p>
      ))}
      <div className="jp-AgentBox-buttons">
        <PersonButton
          label={trans.__('Ask to call it')}
          name={trans.__('Ask to call %1', label(tool.name))}
          isDisabled={isBusy || !read.values}
          onActivate={ask}
        />
        <PersonButton label={trans.__('Close')} onActivate={props.onClose} />
      </div>
      {id === null ? null : <CallEnd key={id} {...props} id={id} />}
    </div>
  );
}

/** Move the focus to the first field of what opened, or to the whole if there is no field. */
function useFirstField(root: React.RefObject<HTMLElement>): void {
  React.useEffect(() => {
    const field = root.current?.querySelector<HTMLElement>(FIELD);
    (field ?? root.current)?.focus();
  }, [root]);
}

/** The progress of the call, and the tool's result. */
function CallEnd(props: ITryToolProps & { id: string }): JSX.Element {
  const trans = useTrans();
  const { id, showRequest } = props;
  const end = useCallEnd(props);
  if (!end) {
    return (
      <p role="status">
        {trans.__('A person has to allow the call.')}{' '}
        <LinkButton
          label={trans.__('Show the request')}
          onClick={() => {
            showRequest(id);
          }}
        />
      </p>
    );
  }
  if (end.result) {
    return <Result result={end.result} />;
  }
  return (
    <p className="jp-AgentBox-error" role="status">
      {label(end.error ?? '', 500) || trans.__('The result is no longer kept.')}
    </p>
  );
}

/** The outcome of the call; `null` before its end. Fetched whenever its request changes. */
function useCallEnd(props: ITryToolProps & { id: string }): ICallEnd | null {
  const { id, server, servers, approvals } = props;
  const [end, setEnd] = React.useState<ICallEnd | null>(null);
  React.useEffect(() => {
    let isWanted = true;
    const look = (): void => {
      servers.getCallEnd(server, id).then(
        found => {
          if (isWanted && (!found.known || found.result || found.error)) {
            setEnd(found);
          }
        },
        () => undefined // asked again at the next change
      );
    };
    const listen = (_: object, changed: string | null): void => {
      if (changed === id || changed === null) {
        look();
      }
    };
    approvals.changed.connect(listen);
    const tracking = approvals.track(id);
    look();
    return () => {
      isWanted = false;
      approvals.changed.disconnect(listen);
      tracking.dispose();
    };
  }, [id, server, servers, approvals]);
  return end;
}

function Result({ result }: { result: IToolResult }): JSX.Element {
  const trans = useTrans();
  const texts = result.content.filter(block => block['type'] === 'text');
  const others = result.content.length - texts.length;
  return (
    <div role="status">
      <p className={result.is_error ? 'jp-AgentBox-error' : undefined}>
        {result.is_error
          ? trans.__('The tool answered with an error:')
          : trans.__('The tool answered:')}
      </p>
      {texts.map((block, index) => (
        <TextBlock
          key={index}
          text={String(block['text'] ?? '')}
          name={trans.__('Text')}
        />
      ))}
      {result.structured === null ? null : (
        <details className="jp-AgentBox-details">
          <summary>{trans.__('As JSON')}</summary>
          <TextBlock
            text={stringify(result.structured, 2)}
            name={trans.__('As JSON')}
          />
        </details>
      )}
      {others > 0 ? (
        <p>
          {trans._n(
            '%1 block of another kind is not shown here.',
            '%1 blocks of other kinds are not shown here.',
            others
          )}
        </p>
      ) : null}
    </div>
  );
}
