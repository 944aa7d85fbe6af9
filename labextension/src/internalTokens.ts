/**
 * Tokens of what the plugins of this extension give each other and nobody else: `index.ts` does not export them.
 */
import { Token } from '@lumino/coreutils';

import type { IAgentBoxClient as Client } from './api/client';
import type { IEventRouter as Router } from './api/events';
import type { ICardContext as CardContext } from './ui/context';

export type IAgentBoxClient = Client;

export const IAgentBoxClient = new Token<IAgentBoxClient>(
  'jupyter-agentbox:IAgentBoxClient',
  'The client of the REST API.'
);

export type IEventRouter = Router;

export const IEventRouter = new Token<IEventRouter>(
  'jupyter-agentbox:IEventRouter',
  'Gives each event of the server to those who asked for its kind.'
);

export type ICardContext = CardContext;

export const ICardContext = new Token<ICardContext>(
  'jupyter-agentbox:ICardContext',
  'What every view of requests needs.'
);
