/**
 * Says why a cell has no card for a request whose link led there.
 */
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IApproval } from '../../api/protocol';

/** Milliseconds for which it is shown. */
const TIME = 10_000;

/** Tell the person, who is at the cell by now. */
export function tellOfNoCard(
  { status }: IApproval,
  trans: TranslationBundle
): void {
  Notification.info(
    status === 'pending'
      ? trans.__(
          'This notebook was last saved before the request was made, so the card of the request is missing. Answer in the AgentBox panel.'
        )
      : trans.__(
          'This notebook has no card for the call. It is in the AgentBox history.'
        ),
    { autoClose: TIME }
  );
}
