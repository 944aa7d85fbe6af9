/**
 * What it means for a request that waits that the server cannot be asked.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Connection } from '../../internalTokens';

/** Say why a request that waited cannot be decided now, and what to do; `null` if it can. */
export function describeLoss(
  connection: Connection,
  trans: TranslationBundle
): string | null {
  switch (connection) {
    case 'connecting':
    case 'connected':
      return null;
    case 'forbidden':
      return trans.__(
        'Your login has ended, or the server was restarted. Log in again in another tab, then come back: what you typed here is kept.'
      );
    case 'not_authorized':
      return trans.__(
        'You can use this server, but you do not have the right to read its requests, so you cannot decide this one here.'
      );
    case 'unreachable':
      return trans.__(
        'The server cannot be reached, so this cannot be decided now. It returns when the server does; if the server was stopped, start it again.'
      );
    case 'stopped':
    case 'failing':
    case 'absent':
      return trans.__(
        'The server was stopped, or cannot list its requests. If it was stopped, start it again and reload the page.'
      );
  }
}
