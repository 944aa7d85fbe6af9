/**
 * Keeps the rules up to date, so that a file that cannot be used any more is noticed whatever the panel shows.
 */
import { PagePoll } from '../../integrations/pagePoll';
import type { PageUser } from '../../integrations/pageReturn';
import type { RulesModel } from '../../model/rules';

/** Milliseconds between two polls. */
const INTERVAL = 30_000;

/** Polls, for no event tells that a file was edited. */
export class RulesUpdater extends PagePoll {
  constructor(model: Pick<RulesModel, 'refresh'>, user: PageUser) {
    super({
      name: 'jupyter-agentbox:rules',
      interval: INTERVAL,
      ask: () => model.refresh(),
      user
    });
  }
}
