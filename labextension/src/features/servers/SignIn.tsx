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
  page: Pick<ISignInPage, 'address'>;
  server: string;
  /** Whether it is a page of the Hub, which does not tell this server that the person has signed in. */
  isOfHub?: boolean;
  onCancel: () => void;
}

/** Nothing opens by itself: the server chooses the URL, and a person checks its host first. */
export function SignIn({
  page,
  server,
  isOfHub = false,
  onCancel
}: ISignInProps): JSX.Element {
  const trans = useTrans();
  const [isOpen, setOpen] = React.useState(false);
  const name = label(server);
  const before = isOfHub
    ? trans.__(
        '%1 is a server of the Hub. Sign in to it on this page of the Hub, in a new tab.',
        name
      )
    : trans.__(
        '%1 wants you to sign in on this page, in a new tab. Look at the host: that is whose page it is.',
        name
      );
  const afterwards = isOfHub
    ? trans.__(
        'Sign in on the page that was opened, come back, and press “Start”.'
      )
    : trans.__(
        'Sign in on the page that was opened, and come back. If you closed it, or it did not sign you in, press “Sign in” again.'
      );
  return (
    <div
      className="jp-AgentBox-signIn"
      role="group"
      aria-label={trans.__('Sign in to %1', name)}
    >
      <p className="jp-AgentBox-note" role="status">
        {isOpen ? afterwards : before}
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
