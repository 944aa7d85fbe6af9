/**
 * When a page is looked at again, or is connected again.
 */
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';

/** Call back when the page becomes visible, or gets its network back while it is, until the result is disposed. */
export function onPageReturn(callback: () => void): IDisposable {
  const look = (): void => {
    if (document.visibilityState === 'visible') {
      callback();
    }
  };
  document.addEventListener('visibilitychange', look);
  window.addEventListener('online', look);
  return new DisposableDelegate(() => {
    document.removeEventListener('visibilitychange', look);
    window.removeEventListener('online', look);
  });
}
