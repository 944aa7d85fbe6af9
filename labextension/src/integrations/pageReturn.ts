/**
 * Detects that a page is visible again, is online again, or belongs to another user.
 */
import type { User } from '@jupyterlab/services';
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';

/** The page's user, as JupyterLab knows them. */
export type PageUser = Pick<User.IManager, 'identity' | 'userChanged'>;

/**
 * Call back when what the page shows may be outdated, until the result is disposed: when the page becomes visible, when it
 * gets its network back while visible, or when another user has logged in, who may see more or less.
 */
export function onPageReturn(
  user: PageUser,
  callback: () => void
): IDisposable {
  const look = (): void => {
    if (document.visibilityState === 'visible') {
      callback();
    }
  };
  let name = user.identity?.username;
  const lookWho = (): void => {
    const before = name;
    name = user.identity?.username;
    if (before !== undefined && name !== before) {
      callback();
    }
  };
  document.addEventListener('visibilitychange', look);
  window.addEventListener('online', look);
  user.userChanged.connect(lookWho);
  return new DisposableDelegate(() => {
    document.removeEventListener('visibilitychange', look);
    window.removeEventListener('online', look);
    user.userChanged.disconnect(lookWho);
  });
}
