/**
 * Tokens of what the plugins of this extension give each other and nobody else: `index.ts` does not export them.
 */
import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';

import type { IAgentBoxClient as Client } from './api/client';
import type { IThreadChange, ServerAction } from './api/queries';
import type { IEventRouter as Router } from './api/events';
import type { IJsonObject } from './api/json';
import type {
  IAddition,
  IApproval,
  ICallEnd,
  IDecisionAnswer,
  IGrant,
  IGrantTerms,
  IHubRequestList,
  IListedTool,
  IOtherServer,
  IQuestion,
  IServerList,
  ISignInPage,
  IToolCall,
  IWholeTool,
  QuestionAction
} from './api/protocol';
import type { IThread } from './api/threads';
import type { IRulesModel as Rules } from './model/rules';
import type { ICardContext as CardContext } from './ui/context';

/** What a page knows about one request. */
export interface IKnownApproval {
  /** The request, or `null` until it was fetched. */
  approval: IApproval | null;
  /**
   * `loaded`: as a list has it, perhaps without long arguments; `whole`: with all that the server has; `unknown`: the
   * server has no such request; `unreachable`: it did not answer.
   */
  state: 'loading' | 'loaded' | 'whole' | 'unknown' | 'unreachable';
}

/** What a person answers to the request as it is shown. */
export type PersonalAnswer =
  | {
      decision: 'allow_once';
      arguments?: IJsonObject;
      reason?: string;
      tell?: boolean;
    }
  | { decision: 'reject_once'; reason: string }
  | { decision: 'allow_always' | 'reject_always'; grant: IGrantTerms };

/** Whether the server can be asked. */
export type Connection =
  | 'connecting'
  | 'connected'
  | 'unreachable'
  | 'absent'
  | 'forbidden'
  | 'failing';

/**
 * All approval requests that this page knows. The card, the panel, the status bar and the notifications are views of it.
 *
 * It has no method that decides without a request that a person was shown: `decide` takes the request itself, whose
 * digest the server compares.
 */
export interface IApprovalModel {
  /** Emits the id of a request that changed, or `null` when more may have. */
  readonly changed: ISignal<IApprovalModel, string | null>;
  /** Emits requests that wait since the last time; never one twice. */
  readonly arrived: ISignal<IApprovalModel, readonly IApproval[]>;
  /** Emits a request that became final while this page looked on. */
  readonly settled: ISignal<IApprovalModel, IApproval>;
  /** Emits the id of a request that is over, and that this page did not know. */
  readonly finished: ISignal<IApprovalModel, string>;
  /** Whether the server can be asked. */
  readonly connection: Connection;
  /** The requests that wait, oldest first: in the order in which code asked. */
  readonly pending: readonly IApproval[];
  /** What is known about a request now. */
  get(id: string): IKnownApproval;
  /** Ask for a request and keep it up to date until the result is disposed. */
  track(id: string): IDisposable;
  /** Fetch a request with all of its arguments. */
  load(id: string): Promise<void>;
  /** Take in requests that another question was answered with. */
  remember(approvals: readonly IApproval[]): void;
  /** Send a person's answer to a request as it was shown. Rejects with `RequestError` or a network error. */
  decide(shown: IApproval, answer: PersonalAnswer): Promise<void>;
  /** Let a request wait longer, as far as the server lets it; say whether it did. */
  extend(id: string): Promise<boolean>;
  /**
   * Send a person's one answer to several requests as they were shown; what became of each that the server answered for.
   * It resolves once this page knows how they stand. Rejects with `RequestError` or a network error.
   */
  decideAll(
    shown: readonly IApproval[],
    answer: PersonalAnswer
  ): Promise<IDecisionAnswer[]>;
  /** Ask for everything again. */
  refresh(): Promise<void>;
  /** The server's time in milliseconds. */
  now(): number;
}

/** The requests that are final, newest first, a page at a time. */
export interface IHistoryModel {
  readonly changed: ISignal<IHistoryModel, void>;
  readonly items: readonly IApproval[];
  readonly hasMore: boolean;
  /** What became of the last page that a person asked for. */
  readonly state: 'loading' | 'ready' | 'failing';
  /** How many requests a page has. */
  pageSize: number;
  load(): Promise<void>;
  loadMore(): Promise<void>;
}

/** The lasting answers that people gave. */
export interface IGrantsModel {
  readonly changed: ISignal<IGrantsModel, void>;
  /** Those given last first; `null` until the server answered. */
  readonly grants: readonly IGrant[] | null;
  refresh(): Promise<void>;
  /** Take one back. Rejects with `RequestError` or a network error. */
  revoke(id: string): Promise<void>;
}

/** What MCP servers ask while their tools run. No approvals: they have a model of their own. */
export interface IQuestionsModel {
  readonly changed: ISignal<IQuestionsModel, void>;
  /** Those that wait, oldest first. */
  readonly questions: readonly IQuestion[];
  refresh(): Promise<void>;
  /** Send a person's answer. Rejects with `RequestError` or a network error. */
  answer(
    id: string,
    action: QuestionAction,
    content?: IJsonObject
  ): Promise<void>;
}

/** What waits at the Hub service for the user. It is decided there: nothing here can answer it. */
export interface IHubRequestsModel {
  readonly changed: ISignal<IHubRequestsModel, void>;
  readonly list: IHubRequestList;
  /** Ask again; whether it is known now what waits. */
  refresh(): Promise<boolean>;
  /** The server's time in milliseconds. */
  now(): number;
}

/** The MCP servers and how they are doing. */
export interface IServersModel {
  readonly changed: ISignal<IServersModel, void>;
  /** `null` until the server answered. */
  readonly list: IServerList | null;
  refresh(): Promise<void>;
  /** Start, stop or restart one. */
  run(name: string, action: ServerAction): Promise<void>;
  /** The tools that one listed last; `null` if it has not yet. */
  listTools(name: string): Promise<IListedTool[] | null>;
  /** A tool that was listed, as a whole. */
  getTool(name: string, tool: string): Promise<IWholeTool>;
  /** Note that a person has looked at tools: the digest of each. */
  lookAtTools(server: string, digests: Record<string, string>): Promise<void>;
  /** Raise the request that asks whether to call a tool, without any code; its id. */
  callTool(server: string, tool: string, values: IJsonObject): Promise<string>;
  /** What became of such a call. */
  getCallEnd(server: string, id: string): Promise<ICallEnd>;
  withdrawCall(server: string, id: string): Promise<void>;
  /** What adding a server would write. */
  previewServer(name: string, configuration: IJsonObject): Promise<IAddition>;
  /** Add a server to the file as it was shown, and start it. */
  addServer(
    name: string,
    configuration: IJsonObject,
    revision: string
  ): Promise<void>;
  listOtherServers(): Promise<IOtherServer[]>;
  /** Begin a person's sign-in to a remote server; nothing opens. */
  beginSignIn(name: string): Promise<ISignInPage>;
  /** Give up a sign-in that was begun and not ended. */
  cancelSignIn(name: string): Promise<void>;
  signOut(name: string): Promise<void>;
  /** Raise the request that asks whether to trust a server of the project; answer its id. */
  review(name: string): Promise<string>;
}

/** The threads of agents. */
export interface IThreadsModel {
  readonly changed: ISignal<IThreadsModel, void>;
  /** Those that changed last first; `null` until the server answered. */
  readonly threads: readonly IThread[] | null;
  readonly hasMore: boolean;
  /** Whether archived threads are listed, too. */
  readonly showsArchived: boolean;
  setShowsArchived(isShown: boolean): Promise<void>;
  refresh(): Promise<void>;
  loadMore(): Promise<void>;
  update(id: string, change: IThreadChange): Promise<void>;
  fork(id: string): Promise<void>;
  delete(id: string): Promise<void>;
  /** Say a word to an agent while it works. */
  steer(turnId: string, text: string): Promise<void>;
  stop(turnId: string): Promise<void>;
}

/** Where code runs: a kernel, and the document that it belongs to. */
export type Place = Pick<IToolCall, 'kernel_id' | 'notebook_path'>;

/** Finds the cell that a request came from. */
export interface IOrigins {
  /** Whether the notebook, or the console, is open on this page. */
  isOpen(approval: IApproval): boolean;
  /** Whether the cell, or the console, is on screen. */
  isInView(approval: IApproval): boolean;
  /** Where the request came from, in words. */
  describe(approval: IApproval): string;
  /** Emits when the kernel of a notebook on this page is another one. */
  readonly kernelsChanged: ISignal<IOrigins, void>;
  /** The code cell that the request came from; `null` unless its notebook is open on this page with the same kernel. */
  cellOf(approval: IApproval): IOriginCell | null;
  /** Open the notebook and go to the cell; say whether the card is there. */
  reveal(approval: IApproval): Promise<boolean>;
  /** What a kernel belongs to, in words of at most `length` characters. */
  describePlace(place: Place, length: number): string;
  /** Open what a kernel belongs to; say whether it could be found. */
  revealPlace(place: Place): Promise<boolean>;
}

/** The code of a cell that a request came from. */
export interface IOriginCell {
  readonly source: string;
  readonly isEditable: boolean;
  /** Put `after` in the place of `before`, in one step that can be undone; say whether that was still the code. */
  replace(before: string, after: string): boolean;
}

/** Puts the code that an agent ran into a notebook, as cells. */
export interface ICodeInserter {
  /** Insert the code of a turn below the cell that a node is in. */
  insertAt(node: HTMLElement, turnId: string): Promise<void>;
  /** Insert the code of the last turn of the active cell below it. */
  insertAtActiveCell(): Promise<void>;
  /** Whether the active cell has a turn. */
  readonly isEnabled: boolean;
}

/** What the panel can do for other plugins. */
export interface IApprovalPanel {
  /** Whether the requests that wait are on screen in the panel. */
  readonly isVisible: boolean;
  /** Show the panel and leave the focus where it is. */
  show(): void;
  /** Show the panel and move the focus into it. */
  open(): void;
  /** Show the panel and move the focus to the next, or the previous, request that waits. */
  focus(step: 1 | -1): void;
  /** Show the panel and move the focus to a request that waits. */
  focusRequest(id: string): void;
  /** Show the panel and move the focus to the table in which a request is decided with others; to the request if there is none. */
  focusTogether(id: string): void;
}

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

export const IApprovalModel = new Token<IApprovalModel>(
  'jupyter-agentbox:IApprovalModel',
  'All approval requests that this page knows.'
);

export const IHistoryModel = new Token<IHistoryModel>(
  'jupyter-agentbox:IHistoryModel',
  'The approval requests that are final.'
);

export const IGrantsModel = new Token<IGrantsModel>(
  'jupyter-agentbox:IGrantsModel',
  'The lasting answers that people gave.'
);

export type IRulesModel = Rules;

export const IRulesModel = new Token<IRulesModel>(
  'jupyter-agentbox:IRulesModel',
  'The rules in force, and what the site turned off.'
);

export const IQuestionsModel = new Token<IQuestionsModel>(
  'jupyter-agentbox:IQuestionsModel',
  'What MCP servers ask while their tools run.'
);

export const IHubRequestsModel = new Token<IHubRequestsModel>(
  'jupyter-agentbox:IHubRequestsModel',
  'What waits at the Hub service.'
);

export const IServersModel = new Token<IServersModel>(
  'jupyter-agentbox:IServersModel',
  'The MCP servers and how they are doing.'
);

export const IThreadsModel = new Token<IThreadsModel>(
  'jupyter-agentbox:IThreadsModel',
  'The threads of agents.'
);

export const ICodeInserter = new Token<ICodeInserter>(
  'jupyter-agentbox:ICodeInserter',
  'Puts the code that an agent ran into a notebook.'
);

export const IOrigins = new Token<IOrigins>(
  'jupyter-agentbox:IOrigins',
  'Finds the cell that a request came from.'
);

export const IApprovalPanel = new Token<IApprovalPanel>(
  'jupyter-agentbox:IApprovalPanel',
  'The side panel of approval requests.'
);
