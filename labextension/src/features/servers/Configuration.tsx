/**
 * Shows the file with the user's servers, and the ways to add one.
 */
import React from 'react';

import type { IServersModel } from '../../internalTokens';
import { useTrans } from '../../ui/context';
import { PersonButton } from '../../ui/guarded/PersonButton';
import type { IPersonButtonProps } from '../../ui/guarded/PersonButton';
import { LockedButton, useWhyLocked } from '../../ui/locks';
import { visible } from '../../ui/text/visibleText';
import { AddServer } from './AddServer';
import { EMPTY } from './newServer';
import type { INewServer } from './newServer';
import { OtherServers } from './OtherServers';

export interface IConfigurationProps {
  servers: IServersModel;
  openDocument?: ((path: string) => void) | null;
}

export function Configuration(props: IConfigurationProps): JSX.Element {
  const { servers } = props;
  const [form, setForm] = React.useState<INewServer | null>(null);
  const [isImporting, setImporting] = React.useState(false);
  const [closed, setClosed] = React.useState<Opened | null>(null);
  if (form) {
    return (
      <AddServer
        start={form}
        servers={servers}
        onClose={() => {
          setForm(null);
          setImporting(false);
          setClosed(isImporting ? 'import' : 'add');
        }}
      />
    );
  }
  if (isImporting) {
    return (
      <OtherServers
        servers={servers}
        onChoose={setForm}
        onClose={() => {
          setImporting(false);
          setClosed('import');
        }}
      />
    );
  }
  return (
    <Place
      {...props}
      closed={closed}
      onAdd={() => {
        setForm(EMPTY);
      }}
      onImport={() => {
        setImporting(true);
      }}
    />
  );
}

/** The part that a button opened. */
type Opened = 'add' | 'import';

interface IPlaceProps extends IConfigurationProps {
  /** The part that was closed; its button gets the focus back. */
  closed: Opened | null;
  onAdd: () => void;
  onImport: () => void;
}

function Place(props: IPlaceProps): JSX.Element {
  const trans = useTrans();
  const { servers, openDocument, closed, onAdd, onImport } = props;
  const why = useWhyLocked('local_servers');
  const file = servers.list?.file;
  const document = file?.document ?? null;
  return (
    <>
      <div className="jp-AgentBox-buttons">
        <OwnServersButton
          label={trans.__('Add server…')}
          why={why}
          isFocused={closed === 'add'}
          onActivate={onAdd}
        />
        <OwnServersButton
          label={trans.__('Import…')}
          name={trans.__('Import servers of other programs')}
          why={why}
          isFocused={closed === 'import'}
          onActivate={onImport}
        />
        {openDocument && document !== null ? (
          <PersonButton
            label={trans.__('Open mcp.json')}
            onActivate={() => {
              openDocument(document);
            }}
          />
        ) : null}
      </div>
      {file && (!openDocument || document === null) ? (
        <p className="jp-AgentBox-serverFacts">
          {trans.__('Your servers are configured in %1.', visible(file.path))}
        </p>
      ) : null}
    </>
  );
}

/** A button for adding a server, disabled if the site allows users none. */
function OwnServersButton(
  props: IPersonButtonProps & { why: string }
): JSX.Element {
  const { why, onActivate, ...rest } = props;
  return why ? (
    <LockedButton {...rest} why={why} />
  ) : (
    <PersonButton {...rest} onActivate={onActivate} />
  );
}
