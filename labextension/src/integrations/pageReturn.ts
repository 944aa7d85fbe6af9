/**
 * When a page is looked at again, is connected again, or is another user's.
 */
import type { User } from '@jupyterlab/services';
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';

/** Who looks at the page, as JupyterLab knows it. */
export type PageUser = Pick<User.IManager, 'identity' | 'userChanged'>;

/**
 * Call back when what was known may not be so any more, until the result is disposed: the page becomes visible, or gets
 * its network back while it is, or somebody else has logged in, who may see more or less than the one before.
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
