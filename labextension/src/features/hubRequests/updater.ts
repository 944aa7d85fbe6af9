/**
 * Keeps what waits at the Hub service up to date.
 */
import { PagePoll } from '../../integrations/pagePoll';
import type { HubRequestsModel } from '../../model/hubRequests';

/** Milliseconds between two polls. */
const INTERVAL = 15_000;

/** Polls until the server says that none of it is for who looks at the page. */
export class HubRequestsUpdater extends PagePoll {
  constructor(model: HubRequestsModel) {
    super({
      name: 'jupyter-agentbox:hub-requests',
      interval: INTERVAL,
      ask: async () => {
        const isAnswered = await model.refresh();
        if (model.isForOthers) {
          this.stop();
        }
        return isAnswered || model.isForOthers;
      }
    });
  }
}
