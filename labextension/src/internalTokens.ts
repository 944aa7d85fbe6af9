/**
 * Tokens that only the plugins of this extension share: `index.ts` does not export them.
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
  /** The request; `null` until it is fetched. */
  approval: IApproval | null;
  /**
   * `loaded`: as a list has it, perhaps without long arguments; `whole`: with all that the server has; `unknown`: the
   * server has no such request; `unreachable`: it did not answer.
   */
  state: 'loading' | 'loaded' | 'whole' | 'unknown' | 'unreachable';
}

/** A person's answer to the request as shown. */
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
  | 'not_authorized'
  | 'stopped'
  | 'failing';

/**
 * All approval requests that this page knows. The card, the panel, the status bar and the notifications are views of it.
 *
 * It has no method that decides a request which a person was not shown: `decide` takes the request itself, whose
 * digest the server compares.
 */
export interface IApprovalModel {
  /** Emits the id of a changed request, or `null` if several may have changed. */
  readonly changed: ISignal<IApprovalModel, string | null>;
  /** Emits new pending requests, each once. */
  readonly arrived: ISignal<IApprovalModel, readonly IApproval[]>;
  /** Emits a request that became final while this page was open. */
  readonly settled: ISignal<IApprovalModel, IApproval>;
  /** Emits the id of a final request that this page did not know. */
  readonly finished: ISignal<IApprovalModel, string>;
  /** Whether the server can be asked. */
  readonly connection: Connection;
  /** The pending requests, oldest first: in the order in which the calls were made. */
  readonly pending: readonly IApproval[];
  /** The calls of this server that wait for approvers at the Hub service, oldest first. */
  readonly atHub: readonly IApproval[];
  /** The present knowledge about a request. */
  get(id: string): IKnownApproval;
  /** Fetch a request and keep it up to date until the result is disposed. */
  track(id: string): IDisposable;
  /** Fetch a request with all of its arguments. */
  load(id: string): Promise<void>;
  /** Add requests from the response to another question. */
  remember(approvals: readonly IApproval[]): void;
  /** Send a person's answer to a request as it was shown. Rejects with `RequestError` or a network error. */
  decide(shown: IApproval, answer: PersonalAnswer): Promise<void>;
  /** Extend a request's waiting time, as far as the server allows; return whether it did. */
  extend(id: string): Promise<boolean>;
  /**
   * Send a person's single answer to several requests as shown; return the result of each that the server answered for.
   * Only a rejection may include requests whose arguments were omitted.
   * It resolves once this page knows their status. Rejects with `RequestError` or a network error.
   */
  decideAll(
    shown: readonly IApproval[],
    answer: PersonalAnswer
  ): Promise<IDecisionAnswer[]>;
  /** Fetch everything again. */
  refresh(): Promise<void>;
  /** The server's time in milliseconds. */
  now(): number;
}

/** The requests that are final, newest first, a page at a time. */
export interface IHistoryModel {
  readonly changed: ISignal<IHistoryModel, void>;
  readonly items: readonly IApproval[];
  readonly hasMore: boolean;
  /** The state of the last page that a person asked for. */
  readonly state: 'loading' | 'ready' | 'failing';
  /** The number of requests in a page. */
  pageSize: number;
  load(): Promise<void>;
  loadMore(): Promise<void>;
}

/** The lasting answers that people gave. */
export interface IGrantsModel {
  readonly changed: ISignal<IGrantsModel, void>;
  /** The grants, most recent first; `null` until the server has answered. */
  readonly grants: readonly IGrant[] | null;
  refresh(): Promise<void>;
  /** Revoke one. Rejects with `RequestError` or a network error. */
  revoke(id: string): Promise<void>;
}

/** The questions of MCP servers while their tools run. These are not approvals, which have their own model. */
export interface IQuestionsModel {
  readonly changed: ISignal<IQuestionsModel, void>;
  /** The open questions, oldest first. */
  readonly questions: readonly IQuestion[];
  refresh(): Promise<void>;
  /** Send a person's answer. Rejects with `RequestError` or a network error. */
  answer(
    id: string,
    action: QuestionAction,
    content?: IJsonObject
  ): Promise<void>;
}

/** The requests at the Hub service that the user can decide. They are decided there: nothing here can answer them. */
export interface IHubRequestsModel {
  readonly changed: ISignal<IHubRequestsModel, void>;
  readonly list: IHubRequestList;
  /** Fetch them again; return whether they are known now. */
  refresh(): Promise<boolean>;
  /** The server's time in milliseconds. */
  now(): number;
}

/** The MCP servers and their states. */
export interface IServersModel {
  readonly changed: ISignal<IServersModel, void>;
  /** `null` until the server answered. */
  readonly list: IServerList | null;
  refresh(): Promise<void>;
  /** Start, stop or restart a server. */
  run(name: string, action: ServerAction): Promise<void>;
  /** The tools that a server last listed; `null` if it has listed none yet. */
  listTools(name: string): Promise<IListedTool[] | null>;
  /** A listed tool in full. */
  getTool(name: string, tool: string): Promise<IWholeTool>;
  /** Mark tools as seen by a person, by their digests. */
  lookAtTools(server: string, digests: Record<string, string>): Promise<void>;
  /** Create the request for calling a tool without any code; return its id. */
  callTool(server: string, tool: string, values: IJsonObject): Promise<string>;
  /** The outcome of such a call. */
  getCallEnd(server: string, id: string): Promise<ICallEnd>;
  /** A preview of what adding a server would write. */
  previewServer(name: string, configuration: IJsonObject): Promise<IAddition>;
  /** Add a server to the file as shown, and start it. */
  addServer(
    name: string,
    configuration: IJsonObject,
    revision: string
  ): Promise<void>;
  listOtherServers(): Promise<IOtherServer[]>;
  /** Begin a person's sign-in to a remote server; nothing opens. */
  beginSignIn(name: string): Promise<ISignInPage>;
  /** Abandon a sign-in in progress. */
  cancelSignIn(name: string): Promise<void>;
  signOut(name: string): Promise<void>;
  /** Create the request for trusting a server of the project; return its id. */
  review(name: string): Promise<string>;
  /** Stop trusting a server of the project, and stop the server. */
  distrust(name: string): Promise<void>;
}

/** The threads of agents. */
export interface IThreadsModel {
  readonly changed: ISignal<IThreadsModel, void>;
  /** The threads, most recently changed first; `null` until the server has answered. */
  readonly threads: readonly IThread[] | null;
  readonly hasMore: boolean;
  /** Whether archived threads are listed as well. */
  readonly showsArchived: boolean;
  setShowsArchived(isShown: boolean): Promise<void>;
  refresh(): Promise<void>;
  loadMore(): Promise<void>;
  update(id: string, change: IThreadChange): Promise<void>;
  fork(id: string): Promise<void>;
  delete(id: string): Promise<void>;
  /** Send a message to an agent while it works. */
  steer(turnId: string, text: string): Promise<void>;
  stop(turnId: string): Promise<void>;
}

/** A place where code runs: a kernel, and its document. */
export type Place = Pick<IToolCall, 'kernel_id' | 'notebook_path'>;

/** Finds the cell that a request came from. */
export interface IOrigins {
  /** Whether the notebook, or the console, is open on this page. */
  isOpen(approval: IApproval): boolean;
  /** Whether there is a notebook or a console to go to: not for other programs, and for a console that was closed. */
  hasPlace(approval: IApproval): boolean;
  /** Whether the buttons of a request, or of a question about its call, are on screen under its cell or in its console. */
  isInView(approval: IApproval, questionId?: string): boolean;
  /** The origin of the request, in words. */
  describe(approval: IApproval): string;
  /** Emits when a notebook or a console on this page was closed. */
  readonly closed: ISignal<IOrigins, void>;
  /** Emits when a notebook on this page has another kernel. */
  readonly kernelsChanged: ISignal<IOrigins, void>;
  /** The code cell that the request came from; `null` unless its notebook is open on this page with the same kernel. */
  cellOf(approval: IApproval): IOriginCell | null;
  /** Open the notebook and go to the cell, to the card of the request or of a question about its call; return whether it is there. */
  reveal(approval: IApproval, questionId?: string): Promise<boolean>;
  /** The name of a kernel's document, in at most `length` characters. */
  describePlace(place: Place, length: number): string;
  /** Open a kernel's document; return whether it was found. */
  revealPlace(place: Place): Promise<boolean>;
}

/** The code of a cell that a request came from. */
export interface IOriginCell {
  readonly source: string;
  readonly isEditable: boolean;
  /** Replace `before` by `after` in one step that can be undone; return whether the code was still `before`. */
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
  /** Whether the pending requests are visible in the panel. */
  readonly isVisible: boolean;
  /** Show the panel and leave the focus where it is. */
  show(): void;
  /** Show the panel and move the focus into it. */
  open(): void;
  /** Show the panel and move the focus to the next, or the previous, pending request. */
  focus(step: 1 | -1): void;
  /** Show the panel and move the focus to a pending request. */
  focusRequest(id: string): void;
  /** Show the panel and move the focus to a server's question. */
  focusQuestion(id: string): void;
  /** Show the panel and move the focus to the table with a request; to the request if it is in none. */
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
  'The MCP servers and their states.'
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
