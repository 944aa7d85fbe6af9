/**
 * A tool of an MCP server, in the server's words: expands to its whole description and its schema.
 */
import React from 'react';

import { stringify } from '../../api/json';
import type { IListedTool, IServer, IWholeTool } from '../../api/protocol';
import type { IServersModel } from '../../internalTokens';
import { RiskMark } from '../../ui/card/RiskMark';
import {
  LinkButton,
  TextBlock,
  VisibleText
} from '../../ui/components/VisibleText';
import { useTrans } from '../../ui/context';
import { useKeptFocus } from '../../ui/hooks/useKeptFocus';
import { firstSentence } from '../../ui/text/firstSentence';
import { claimedRisk } from '../../ui/text/risk';
import { label } from '../../ui/text/visibleText';
import { messageOf } from '../../ui/text/messages';
import { TryTool } from './TryTool';
import type { ITrying } from './TryTool';

/** The number of characters of the first sentence that are shown. */
const MAX_SENTENCE = 200;

export interface IToolProps {
  tool: IListedTool;
  server: IServer;
  servers: IServersModel;
  trying: ITrying | null;
}

export function Tool(props: IToolProps): JSX.Element {
  const trans = useTrans();
  const { tool, server, servers } = props;
  const lookAt = (): void => {
    if (tool.mark) {
      servers
        .lookAtTools(server.name, { [tool.name]: tool.digest })
        .catch(() => undefined); // it stays marked
    }
  };
  const [isOpen, setOpen] = React.useState(false);
  const { risk, text } = claimedRisk(tool.annotations, trans);
  return (
    <details
      className="jp-AgentBox-tool"
      onToggle={event => {
        if (event.target === event.currentTarget) {
          setOpen(event.currentTarget.open);
          if (!event.currentTarget.open) {
            lookAt(); // while it is open, the mark stays
          }
        }
      }}
    >
      <summary>
        <code>
          <VisibleText text={label(tool.name)} />
        </code>{' '}
        <RiskMark risk={risk} text={text} />
        {tool.mark ? (
          <span className="jp-AgentBox-toolMark">
            {tool.mark === 'new' ? trans.__('new') : trans.__('changed')}
          </span>
        ) : null}
        <span className="jp-AgentBox-toolSays">
          <VisibleText
            text={label(firstSentence(tool.description), MAX_SENTENCE)}
          />
        </span>
      </summary>
      {isOpen ? <Whole key={tool.digest} {...props} /> : null}
    </details>
  );
}

function Whole(props: IToolProps): JSX.Element | null {
  const trans = useTrans();
  const { tool, server, servers, trying } = props;
  const [isTrying, setTrying] = React.useState(false);
  const root = React.useRef<HTMLDivElement>(null);
  useKeptFocus(root);
  const [whole, setWhole] = React.useState<IWholeTool | null>(null);
  const [failure, setFailure] = React.useState('');
  React.useEffect(() => {
    servers.getTool(server.name, tool.name).then(setWhole, (error: unknown) => {
      setFailure(messageOf(error, 300));
    });
  }, [servers, server.name, tool.name]);
  if (failure) {
    return <p className="jp-AgentBox-error">{failure}</p>;
  }
  if (!whole) {
    return null;
  }
  return (
    <div ref={root} className="jp-AgentBox-toolWhole" tabIndex={-1}>
      {whole.description ? (
        <TextBlock text={whole.description} name={trans.__('Description')} />
      ) : (
        <p>{trans.__('The server does not describe it.')}</p>
      )}
      <details className="jp-AgentBox-details">
        <summary>{trans.__('Schema of the arguments')}</summary>
        <TextBlock
          text={stringify(whole.input_schema, 2)}
          name={trans.__('Schema of the arguments')}
        />
      </details>
      {trying && isTrying ? (
        <TryTool
          {...trying}
          server={server.name}
          tool={whole}
          servers={servers}
          onClose={() => {
            setTrying(false);
          }}
        />
      ) : null}
      {trying && !isTrying ? (
        <LinkButton
          label={trans.__('Try…')}
          title={trans.__('Call it from here, once it is allowed')}
          onClick={() => {
            setTrying(true);
          }}
        />
      ) : null}
    </div>
  );
}
