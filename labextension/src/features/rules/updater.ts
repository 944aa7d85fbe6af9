/**
 * Keeps the rules up to date, so that a file that cannot be used any more is noticed whatever the panel shows.
 */
import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';

import { onPageReturn } from '../../integrations/pageReturn';
import type { RulesModel } from '../../model/rules';

/** Milliseconds between two polls, and at most while the server does not answer. */
const INTERVAL = 30_000;
const LONGEST_INTERVAL = 300_000;

/** Polls while somebody looks at the page: no event tells that a file was edited. */
export class RulesUpdater implements IDisposable {
  constructor(private readonly _model: Pick<RulesModel, 'refresh'>) {
    this._poll = new Poll({
      name: 'jupyter-agentbox:rules',
      factory: () => this._refresh(),
      frequency: { interval: INTERVAL, backoff: true, max: LONGEST_INTERVAL },
      standby: 'when-hidden'
    });
    this._returns = onPageReturn(() => {
      void this._poll.refresh();
    });
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  dispose(): void {
    this._returns.dispose();
    this._poll.dispose();
  }

  private async _refresh(): Promise<void> {
    if (!(await this._model.refresh())) {
      throw new Error('the rules were asked for in vain'); // the poll asks less and less often
    }
  }

  private readonly _poll: Poll;
  private readonly _returns: IDisposable;
}
