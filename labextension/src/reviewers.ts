/**
 * Names of reviewers, as people read them.
 */
import type { User } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import { label } from './visibleText';

/** Says who a user name is. */
export type NameOf = (username: string) => string;

/** What Jupyter makes up for a browser that nobody signed in with. */
const ANONYMOUS = /^[0-9a-f]{32}$/;

/** Say "you" for the user of this page, and spare the reader what Jupyter made up. */
export function reviewerNames(
  user: Pick<User.IManager, 'identity'>,
  trans: TranslationBundle
): NameOf {
  return username => {
    if (username === user.identity?.username) {
      return trans.__('you');
    }
    return ANONYMOUS.test(username)
      ? trans.__('another browser (%1)', username.slice(0, 6))
      : label(username, 60);
  };
}
