/**
 * Keeps the rules up to date, so that a broken file is noticed whatever the panel shows.
 */
import { PagePoll } from '../../integrations/pagePoll';
import type { IPagePollOptions } from '../../integrations/pagePoll';
import type { PageUser } from '../../integrations/pageReturn';
import type { RulesModel } from '../../model/rules';

/** Milliseconds between two polls. */
const INTERVAL = 30_000;

/** Polls, because there is no event for an edited file. */
export class RulesUpdater extends PagePoll {
  constructor(
    model: Pick<RulesModel, 'refresh'>,
    user: PageUser,
    server: IPagePollOptions['server']
  ) {
    super({
      name: 'jupyter-agentbox:rules',
      interval: INTERVAL,
      ask: () => model.refresh(),
      user,
      server
    });
  }
}
