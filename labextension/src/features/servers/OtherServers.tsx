/**
 * The MCP servers in other programs' configuration, from which a person can choose one.
 */
import React from 'react';

import { stringify } from '../../api/json';
import type { IOtherServer } from '../../api/protocol';
import type { IServersModel } from '../../internalTokens';
import { TextBlock, VisibleText } from '../../ui/components/VisibleText';
import { useTrans } from '../../ui/context';
import { PersonButton } from '../../ui/guarded/PersonButton';
import { useFirstFocus } from '../../ui/hooks/useFirstFocus';
import { label, tail } from '../../ui/text/visibleText';
import { messageOf } from '../../ui/text/messages';
import { formOf } from './newServer';
import type { INewServer } from './newServer';

export interface IOtherServersProps {
  servers: Pick<IServersModel, 'listOtherServers'>;
  onChoose: (form: INewServer) => void;
  onClose: () => void;
}

export function OtherServers(props: IOtherServersProps): JSX.Element {
  const trans = useTrans();
  const { servers } = props;
  const [found, setFound] = React.useState<IOtherServer[] | null>(null);
  const [failure, setFailure] = React.useState('');
  const root = React.useRef<HTMLDivElement>(null);
  useFirstFocus(root, true);
  React.useEffect(() => {
    servers.listOtherServers().then(setFound, (error: unknown) => {
      setFailure(messageOf(error));
    });
  }, [servers]);
  return (
    <div
      ref={root}
      className="jp-AgentBox-addServer"
      role="group"
      tabIndex={-1}
      aria-label={trans.__('Servers of other programs')}
    >
      {failure ? <p className="jp-AgentBox-error">{failure}</p> : null}
      {found?.length === 0 ? (
        <p className="jp-AgentBox-empty">
          {trans.__('VS Code, Cursor and Claude have no MCP servers here.')}
        </p>
      ) : null}
      <ul role="list" className="jp-AgentBox-tools">
        {found?.map((server, index) => (
          <li key={index} className="jp-AgentBox-server">
            <Other server={server} onChoose={props.onChoose} />
          </li>
        ))}
      </ul>
      <div className="jp-AgentBox-buttons">
        <PersonButton label={trans.__('Close')} onActivate={props.onClose} />
      </div>
    </div>
  );
}

interface IOtherProps {
  server: IOtherServer;
  onChoose: (form: INewServer) => void;
}

function Other({ server, onChoose }: IOtherProps): JSX.Element {
  const trans = useTrans();
  const { name, program, file, configuration, notes, refused } = server;
  return (
    <>
      <div className="jp-AgentBox-serverLine">
        <span className="jp-AgentBox-name">
          <VisibleText text={label(name)} />
        </span>
        <span className="jp-AgentBox-serverState">{label(program, 40)}</span>
        {configuration && !server.is_known ? (
          <PersonButton
            isLink
            label={trans.__('Choose…')}
            name={trans.__('Choose %1', label(name))}
            onActivate={() => {
              onChoose(formOf(name, configuration));
            }}
          />
        ) : null}
      </div>
      <div className="jp-AgentBox-serverFacts">{tail(file, 80)}</div>
      {server.is_known ? (
        <p>{trans.__('There is a server of this name already.')}</p>
      ) : null}
      {refused ? (
        <p className="jp-AgentBox-error">{label(refused, 500)}</p>
      ) : null}
      {notes.map(note => (
        <p key={note} className="jp-AgentBox-note">
          <VisibleText text={label(note, 500)} />
        </p>
      ))}
      {configuration ? (
        <details className="jp-AgentBox-details">
          <summary>{trans.__('The entry')}</summary>
          <TextBlock
            text={stringify(configuration, 2)}
            name={trans.__('The entry')}
          />
        </details>
      ) : null}
    </>
  );
}
