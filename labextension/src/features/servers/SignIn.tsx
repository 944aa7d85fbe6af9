/**
 * The page on which a person signs in to a server: its host, and a button that opens it.
 */
import React from 'react';

import type { ISignInPage } from '../../api/protocol';
import { useTrans } from '../../ui/context';
import { PersonButton } from '../../ui/guarded/PersonButton';
import { Address, openPage } from '../../ui/question/Address';
import { label } from '../../ui/text/visibleText';

export interface ISignInProps {
  page: ISignInPage;
  server: string;
  onCancel: () => void;
}

/** Nothing opens by itself: the server chooses the URL, and a person checks its host first. */
export function SignIn({ page, server, onCancel }: ISignInProps): JSX.Element {
  const trans = useTrans();
  const [isOpen, setOpen] = React.useState(false);
  const name = label(server);
  return (
    <div
      className="jp-AgentBox-signIn"
      role="group"
      aria-label={trans.__('Sign in to %1', name)}
    >
      <p className="jp-AgentBox-note" role="status">
        {isOpen
          ? trans.__(
              'Sign in on the page that was opened, and come back. If you closed it, or it did not sign you in, press “Sign in” again.'
            )
          : trans.__(
              '%1 wants you to sign in on this page, in a new tab. Look at the host: that is whose page it is.',
              name
            )}
      </p>
      <Address url={page.address} />
      <div className="jp-AgentBox-buttons">
        <PersonButton
          label={trans.__('Open the page')}
          onActivate={() => {
            openPage(page.address);
            setOpen(true);
          }}
        />
        <PersonButton label={trans.__('Cancel')} onActivate={onCancel} />
      </div>
    </div>
  );
}
