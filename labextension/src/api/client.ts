/**
 * The REST client. It asks and answers.
 */
import { URLExt } from '@jupyterlab/coreutils';
import type { ServerConnection } from '@jupyterlab/services';

import { plain, toApproval, toList, toPolicy } from './answers';
import { RestConnection, valueOf } from './connection';
import { isObject, stringify } from './json';
import type { IJsonObject, JsonValue } from './json';
import type {
  IApproval,
  IAddition,
  IApprovalPage,
  IAuditPage,
  ICallEnd,
  ICellUpdate,
  IDecisionAnswer,
  IGrant,
  IHubRequestList,
  IIsolation,
  IKernelEnd,
  IListedTool,
  IOtherServer,
  IQuestion,
  IRequestSummary,
  IServer,
  IServerList,
  ISignInPage,
  ISummaryPage,
  IWholeTool,
  QuestionAction
} from './protocol';
import type {
  AuditQuery,
  IApprovalQuery,
  IDecisionBody,
  INamedDecision,
  IThreadChange,
  IThreadQuery,
  ServerAction
} from './queries';
import type { IDryRun, IPolicy } from './rules';
import type { IModelMessage, IThread, IThreadPage, ITurn } from './threads';

/** What the server extension can be asked. */
export interface IAgentBoxClient {
  /** The server's time in milliseconds, as far as it is known here. */
  now(): number;
  /** A page of requests, newest first. */
  listApprovals(query: IApprovalQuery): Promise<IApprovalPage>;
  /** Which requests there are and how they stand, newest first: the known page itself if it still says the same. */
  listSummaries(
    query: IApprovalQuery,
    known?: ISummaryPage | null
  ): Promise<ISummaryPage>;
  /** A request with all of its arguments. */
  getApproval(id: string): Promise<IApproval>;
  /** A page of the record of all calls, newest first. */
  listAudit(query: AuditQuery): Promise<IAuditPage>;
  /** Where to download all records. */
  auditUrl(query: AuditQuery, format: 'csv' | 'jsonl'): string;
  /** Send a person's answer; the request as it is then. */
  decide(id: string, body: IDecisionBody): Promise<IApproval>;
  /** Let a request wait longer; the request as it is then. */
  extend(id: string): Promise<IApproval>;
  /** Ask what the code of a cell would be with what a person edited in a request. Changes nothing. */
  proposeUpdate(id: string, source: string): Promise<ICellUpdate>;
  /** The lasting answers that hold, those given last first. */
  listGrants(): Promise<IGrant[]>;
  /** Take a lasting answer back. */
  revokeGrant(id: string): Promise<void>;
  /** What waits at the Hub service for the user whose server this is. */
  listHubRequests(): Promise<IHubRequestList>;
  /** What MCP servers ask now, oldest first. */
  listQuestions(): Promise<IQuestion[]>;
  /** Send a person's answer to a question; with the values of an accepted form. */
  answerQuestion(
    id: string,
    action: QuestionAction,
    content?: IJsonObject
  ): Promise<void>;
  /** Send a person's answers to several requests; what became of each, in order. */
  decideAll(decisions: readonly INamedDecision[]): Promise<IDecisionAnswer[]>;
  /** All MCP servers, and what is wrong with their configuration. */
  listServers(): Promise<IServerList>;
  /** Start, stop or restart an MCP server. */
  runServer(name: string, action: ServerAction): Promise<IServer>;
  /** The tools of an MCP server as it listed them last; `null` if it has not yet. Starts nothing. */
  listTools(name: string): Promise<IListedTool[] | null>;
  /** One of them as a whole. */
  getTool(name: string, tool: string): Promise<IWholeTool>;
  /** Note that a person has looked at tools: the digest of each. */
  lookAtTools(server: string, digests: Record<string, string>): Promise<void>;
  /** Ask whether to call a tool, without any code: a request, like all others. */
  callTool(
    server: string,
    tool: string,
    values: IJsonObject
  ): Promise<IApproval>;
  /** What became of such a call. */
  getCallEnd(server: string, id: string): Promise<ICallEnd>;
  /** Take such a call back. */
  withdrawCall(server: string, id: string): Promise<void>;
  /** What adding a server would write. */
  previewServer(name: string, configuration: IJsonObject): Promise<IAddition>;
  /** Add a server to the file as it was shown. */
  addServer(
    name: string,
    configuration: IJsonObject,
    revision: string
  ): Promise<void>;
  /** The servers that other programs have. */
  listOtherServers(): Promise<IOtherServer[]>;
  /** Ask whether to trust an MCP server of the project: a request, like all others, whose id this is. */
  reviewServer(name: string): Promise<string>;
  /** Begin a person's sign-in to a remote MCP server. */
  beginSignIn(name: string): Promise<ISignInPage>;
  /** Give up a sign-in that was begun and not ended. */
  cancelSignIn(name: string): Promise<void>;
  /** Forget the sign-in to a server. */
  signOut(name: string): Promise<void>;
  /** The rules in force, and those of the user as they can be changed. */
  getPolicy(): Promise<IPolicy>;
  /** Replace the user's rules of a revision. */
  putPolicy(rules: IJsonObject[], revision: string): Promise<IPolicy>;
  /** What a rule would have made of the history. */
  tryRule(rule: IJsonObject): Promise<IDryRun>;
  /** How far a kernel is kept from the rest of the machine, and what a page with it may load. */
  getIsolation(kernelId: string): Promise<IIsolation>;
  /** How a kernel last ended though nobody had asked it to; `null` if it never did. */
  getLastEnd(kernelId: string): Promise<IKernelEnd | null>;
  /** A page of agents' threads. */
  listThreads(query: IThreadQuery): Promise<IThreadPage>;
  /** A thread. */
  getThread(id: string): Promise<IThread>;
  /** Change a thread's name, or archive it. */
  updateThread(id: string, change: IThreadChange): Promise<void>;
  /** Make a copy of a thread, that goes on by itself. */
  forkThread(id: string): Promise<void>;
  /** Delete a thread with all of its turns. */
  deleteThread(id: string): Promise<void>;
  /** What the model was sent in a thread. */
  getMessages(threadId: string): Promise<IModelMessage[]>;
  /** A turn with its items. */
  getTurn(id: string): Promise<ITurn>;
  /** Say a word to an agent while it works. */
  steerTurn(id: string, text: string): Promise<void>;
  /** Stop a turn. */
  interruptTurn(id: string): Promise<void>;
}

/** Speaks to the server extension with the browser's session. */
export class AgentBoxClient implements IAgentBoxClient {
  constructor(settings: ServerConnection.ISettings) {
    this._connection = new RestConnection(settings);
  }

  now(): number {
    return this._connection.now();
  }

  async listApprovals(query: IApprovalQuery): Promise<IApprovalPage> {
    const { items, next } = await this._list(parametersOf(query));
    return { approvals: items.map(toApproval), next };
  }

  async listSummaries(
    query: IApprovalQuery,
    known: ISummaryPage | null = null
  ): Promise<ISummaryPage> {
    const parameters = parametersOf(query);
    parameters.set('summary', 'true');
    const tag = known?.tag ?? null;
    const response = await this._connection.send(
      'GET',
      `approvals?${parameters}`,
      {
        headers: tag === null ? {} : { 'If-None-Match': tag }
      }
    );
    if (known && tag !== null && response.status === 304) {
      return known;
    }
    const { items, next } = toList(await valueOf(response));
    const summaries = items.map(plain<IRequestSummary>);
    return { summaries, next, tag: response.headers.get('ETag') };
  }

  private async _list(
    parameters: URLSearchParams
  ): Promise<{ items: JsonValue[]; next: string | null }> {
    return toList(
      await this._connection.request('GET', `approvals?${parameters}`)
    );
  }

  async getApproval(id: string): Promise<IApproval> {
    const path = URLExt.join('approvals', encodeURIComponent(id));
    return toApproval(await this._connection.request('GET', path));
  }

  async listAudit(query: AuditQuery): Promise<IAuditPage> {
    const page = await this._connection.request('GET', `audit?${given(query)}`);
    return plain<IAuditPage>(page);
  }

  auditUrl(query: AuditQuery, format: 'csv' | 'jsonl'): string {
    return this._connection.url(`audit?${given({ ...query, format })}`);
  }

  async decide(id: string, body: IDecisionBody): Promise<IApproval> {
    const path = URLExt.join('approvals', encodeURIComponent(id), 'decision');
    const { grant, ...rest } = body;
    const json = stringify({
      ...rest,
      ...(grant ? { grant: { ...grant } } : {})
    } as IJsonObject);
    return toApproval(await this._connection.request('POST', path, json));
  }

  async extend(id: string): Promise<IApproval> {
    const path = URLExt.join('approvals', encodeURIComponent(id), 'extend');
    return toApproval(await this._connection.request('POST', path, '{}'));
  }

  async proposeUpdate(id: string, source: string): Promise<ICellUpdate> {
    const path = URLExt.join(
      'approvals',
      encodeURIComponent(id),
      'cell-update'
    );
    const body = JSON.stringify({ source });
    return plain<ICellUpdate>(
      await this._connection.request('POST', path, body)
    );
  }

  async listGrants(): Promise<IGrant[]> {
    const answer = await this._connection.request('GET', 'grants');
    return plain<{ grants: IGrant[] }>(answer).grants;
  }

  async revokeGrant(id: string): Promise<void> {
    const path = URLExt.join('grants', encodeURIComponent(id));
    await this._connection.request('DELETE', path);
  }

  async listHubRequests(): Promise<IHubRequestList> {
    return plain<IHubRequestList>(
      await this._connection.request('GET', 'hub-requests')
    );
  }

  async listQuestions(): Promise<IQuestion[]> {
    const answer = await this._connection.request('GET', 'questions');
    return plain<{ questions: IQuestion[] }>(answer).questions;
  }

  async answerQuestion(
    id: string,
    action: QuestionAction,
    content?: IJsonObject
  ): Promise<void> {
    const path = URLExt.join('questions', encodeURIComponent(id), 'answer');
    const body: IJsonObject = content ? { action, content } : { action };
    await this._connection.request('POST', path, stringify(body));
  }

  async decideAll(
    decisions: readonly INamedDecision[]
  ): Promise<IDecisionAnswer[]> {
    const body = { decisions: decisions.map(one => ({ ...one })) };
    const json = stringify(body as unknown as IJsonObject);
    const answer = await this._connection.request(
      'POST',
      'approvals/decisions',
      json
    );
    return plain<{ decisions: IDecisionAnswer[] }>(answer).decisions;
  }

  async listServers(): Promise<IServerList> {
    return plain<IServerList>(await this._connection.request('GET', 'servers'));
  }

  async runServer(name: string, action: ServerAction): Promise<IServer> {
    const path = URLExt.join('servers', encodeURIComponent(name), action);
    return plain<IServer>(await this._connection.request('POST', path, '{}'));
  }

  async listTools(name: string): Promise<IListedTool[] | null> {
    const path = URLExt.join('servers', encodeURIComponent(name), 'tools');
    const answer = await this._connection.request('GET', path);
    return plain<{ tools: IListedTool[] | null }>(answer).tools;
  }

  async getTool(name: string, tool: string): Promise<IWholeTool> {
    const path = URLExt.join('servers', encodeURIComponent(name), 'tools');
    const query = new URLSearchParams({ tool });
    const answer = await this._connection.request('GET', `${path}?${query}`);
    // Not by `plain`: a schema keeps the digits of its limits.
    const [found] = (answer as unknown as { tools: IWholeTool[] }).tools;
    return found;
  }

  async lookAtTools(
    server: string,
    digests: Record<string, string>
  ): Promise<void> {
    const name = encodeURIComponent(server);
    const path = URLExt.join('servers', name, 'tools', 'seen');
    await this._connection.request('POST', path, JSON.stringify(digests));
  }

  async callTool(
    server: string,
    tool: string,
    values: IJsonObject
  ): Promise<IApproval> {
    const path = URLExt.join('servers', encodeURIComponent(server), 'calls');
    const body = stringify({ tool, arguments: values });
    return toApproval(await this._connection.request('POST', path, body));
  }

  async getCallEnd(server: string, id: string): Promise<ICallEnd> {
    const answer = await this._connection.request('GET', callPath(server, id));
    return answer as unknown as ICallEnd;
  }

  async withdrawCall(server: string, id: string): Promise<void> {
    await this._connection.request('DELETE', callPath(server, id));
  }

  async previewServer(
    name: string,
    configuration: IJsonObject
  ): Promise<IAddition> {
    const path = URLExt.join('servers', encodeURIComponent(name), 'preview');
    const body = stringify({ configuration });
    return plain<IAddition>(await this._connection.request('POST', path, body));
  }

  async addServer(
    name: string,
    configuration: IJsonObject,
    revision: string
  ): Promise<void> {
    const path = URLExt.join('servers', encodeURIComponent(name));
    await this._connection.request(
      'PUT',
      path,
      stringify({ configuration, revision })
    );
  }

  async listOtherServers(): Promise<IOtherServer[]> {
    const answer = await this._connection.request('GET', 'other-servers');
    return (answer as unknown as { servers: IOtherServer[] }).servers;
  }

  async beginSignIn(name: string): Promise<ISignInPage> {
    const path = URLExt.join('servers', encodeURIComponent(name), 'sign-in');
    const body = stringify({ page: this._connection.baseUrl });
    return plain<ISignInPage>(
      await this._connection.request('POST', path, body)
    );
  }

  async cancelSignIn(name: string): Promise<void> {
    const encoded = encodeURIComponent(name);
    const path = URLExt.join('servers', encoded, 'sign-in', 'cancel');
    await this._connection.request('POST', path, '{}');
  }

  async signOut(name: string): Promise<void> {
    const path = URLExt.join('servers', encodeURIComponent(name), 'sign-in');
    await this._connection.request('DELETE', path);
  }

  async reviewServer(name: string): Promise<string> {
    const path = URLExt.join('servers', encodeURIComponent(name), 'trust');
    const request = await this._connection.request('POST', path, '{}');
    return plain<{ id: string }>(request).id;
  }

  async getPolicy(): Promise<IPolicy> {
    return toPolicy(await this._connection.request('GET', 'policy'));
  }

  async putPolicy(rules: IJsonObject[], revision: string): Promise<IPolicy> {
    const body = stringify({ rules, revision });
    return toPolicy(await this._connection.request('PUT', 'policy', body));
  }

  async tryRule(rule: IJsonObject): Promise<IDryRun> {
    const path = URLExt.join('policy', 'dry-run');
    return plain<IDryRun>(
      await this._connection.request('POST', path, stringify({ rule }))
    );
  }

  async getIsolation(kernelId: string): Promise<IIsolation> {
    const kernel = await this._getKernel(kernelId);
    const { isolation, content_security_policy: policy } = kernel;
    return {
      level: typeof isolation === 'string' ? isolation : null,
      policy: typeof policy === 'string' ? policy : null
    };
  }

  async getLastEnd(kernelId: string): Promise<IKernelEnd | null> {
    const { last_end: end } = await this._getKernel(kernelId);
    return isObject(end) ? plain<IKernelEnd>(end) : null;
  }

  async listThreads(query: IThreadQuery): Promise<IThreadPage> {
    const parameters = new URLSearchParams({
      archived: query.isArchived ? '1' : '0'
    });
    if (query.cursor) {
      parameters.set('cursor', query.cursor);
    }
    const page = await this._connection.request('GET', `threads?${parameters}`);
    return plain<IThreadPage>(page);
  }

  async getThread(id: string): Promise<IThread> {
    const path = URLExt.join('threads', encodeURIComponent(id));
    return plain<IThread>(await this._connection.request('GET', path));
  }

  async updateThread(id: string, change: IThreadChange): Promise<void> {
    const path = URLExt.join('threads', encodeURIComponent(id));
    await this._connection.request('PATCH', path, JSON.stringify(change));
  }

  async forkThread(id: string): Promise<void> {
    const path = URLExt.join('threads', encodeURIComponent(id), 'fork');
    await this._connection.request('POST', path, '{}');
  }

  async deleteThread(id: string): Promise<void> {
    const path = URLExt.join('threads', encodeURIComponent(id));
    await this._connection.request('DELETE', path);
  }

  async getMessages(threadId: string): Promise<IModelMessage[]> {
    const path = URLExt.join(
      'threads',
      encodeURIComponent(threadId),
      'messages'
    );
    const { messages } = plain<{ messages: IModelMessage[] }>(
      await this._connection.request('GET', path)
    );
    return messages;
  }

  async getTurn(id: string): Promise<ITurn> {
    const path = URLExt.join('turns', encodeURIComponent(id));
    return plain<ITurn>(await this._connection.request('GET', path));
  }

  async steerTurn(id: string, text: string): Promise<void> {
    const path = URLExt.join('turns', encodeURIComponent(id), 'steer');
    await this._connection.request('POST', path, JSON.stringify({ text }));
  }

  async interruptTurn(id: string): Promise<void> {
    const path = URLExt.join('turns', encodeURIComponent(id), 'interrupt');
    await this._connection.request('POST', path, '{}');
  }

  private async _getKernel(id: string): Promise<IJsonObject> {
    const path = URLExt.join('kernels', encodeURIComponent(id));
    const answer = await this._connection.request('GET', path);
    return isObject(answer) ? answer : {};
  }

  private readonly _connection: RestConnection;
}

function callPath(server: string, id: string): string {
  const parts = [server, 'calls', id].map(encodeURIComponent);
  return URLExt.join('servers', ...parts);
}

/** The parts of a query that say something. */
function given(query: AuditQuery): URLSearchParams {
  return new URLSearchParams(
    Object.entries(query).filter(([, value]) => value !== '')
  );
}

function parametersOf(query: IApprovalQuery): URLSearchParams {
  const parameters = new URLSearchParams();
  if (query.ids) {
    parameters.set('ids', query.ids.join(','));
  }
  if (query.status) {
    parameters.set('status', query.status.join(','));
  }
  if (query.limit) {
    parameters.set('limit', String(query.limit));
  }
  if (query.cursor) {
    parameters.set('cursor', query.cursor);
  }
  return parameters;
}
