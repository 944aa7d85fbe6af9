/**
 * Keeps the requests at the Hub service up to date.
 */
import { PagePoll } from '../../integrations/pagePoll';
import type { IPagePollOptions } from '../../integrations/pagePoll';
import type { PageUser } from '../../integrations/pageReturn';
import type { HubRequestsModel } from '../../model/hubRequests';

/** Milliseconds between two polls. */
const INTERVAL = 15_000;

/** Polls, less and less often if the requests are somebody else's: the end of a login, or another user, changes that. */
export class HubRequestsUpdater extends PagePoll {
  constructor(
    model: Pick<HubRequestsModel, 'refresh'>,
    user: PageUser,
    server: IPagePollOptions['server']
  ) {
    super({
      name: 'jupyter-agentbox:hub-requests',
      interval: INTERVAL,
      ask: () => model.refresh(),
      user,
      server
    });
  }
}
