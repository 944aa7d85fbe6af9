/**
 * Who looks at a page, in a test.
 */
import type { User } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import type { PageUser } from '../src/integrations/pageReturn';

/** A user manager that is told who has logged in; at first it does not know. */
export class FakeUser implements PageUser {
  constructor(username: string | null = null) {
    this.identity = identityOf(username);
  }

  identity: User.IIdentity | null;

  readonly userChanged: Signal<User.IManager, User.IUser> = new Signal(
    this as unknown as User.IManager
  );

  become(username: string, color = 'red'): void {
    const identity = { username, color } as User.IIdentity;
    this.identity = identity;
    this.userChanged.emit({ identity, permissions: {} });
  }
}

function identityOf(username: string | null): User.IIdentity | null {
  return username === null ? null : ({ username } as User.IIdentity);
}
