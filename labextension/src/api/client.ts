/**
 * The client of the REST API.
 */
import { URLExt } from '@jupyterlab/coreutils';
import type { ServerConnection } from '@jupyterlab/services';

import { plain, toApproval, toIdsAtHub, toList, toPolicy } from './answers';
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
  IKernelExit,
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

/** The server extension's REST API. */
export interface IAgentBoxClient {
  /** The server's current time in milliseconds, as estimated here. */
  now(): number;
  /** Whether the last response came from a Hub or a proxy, which said that the server does not run. */
  readonly isStopped: boolean;
  /** A page of requests, newest first. */
  listApprovals(query: IApprovalQuery): Promise<IApprovalPage>;
  /** The ids and statuses of requests, newest first: the same page object if nothing changed. */
  listSummaries(
    query: IApprovalQuery,
    known?: ISummaryPage | null
  ): Promise<ISummaryPage>;
  /** A request with all of its arguments. */
  getApproval(id: string): Promise<IApproval>;
  /** A page of the record of all calls, newest first. */
  listAudit(query: AuditQuery): Promise<IAuditPage>;
  /** The URL for downloading all records. */
  auditUrl(query: AuditQuery, format: 'csv' | 'jsonl'): string;
  /** Post a decision; return the updated request. */
  decide(id: string, body: IDecisionBody): Promise<IApproval>;
  /** Extend a request's waiting time; return the updated request. */
  extend(id: string): Promise<IApproval>;
  /** Return a cell's code with the edited arguments of a request. Changes nothing. */
  proposeUpdate(id: string, source: string): Promise<ICellUpdate>;
  /** The current grants, most recent first. */
  listGrants(): Promise<IGrant[]>;
  /** Revoke a grant. */
  revokeGrant(id: string): Promise<void>;
  /** The requests at the Hub service that wait for this server's user. */
  listHubRequests(): Promise<IHubRequestList>;
  /** The open questions of MCP servers, oldest first. */
  listQuestions(): Promise<IQuestion[]>;
  /** Answer a question, with the values of an accepted form. */
  answerQuestion(
    id: string,
    action: QuestionAction,
    content?: IJsonObject
  ): Promise<void>;
  /** Post decisions on several requests; return the result of each, in order. */
  decideAll(decisions: readonly INamedDecision[]): Promise<IDecisionAnswer[]>;
  /** All MCP servers, and the problems in their configuration. */
  listServers(): Promise<IServerList>;
  /** Start, stop or restart an MCP server. */
  runServer(name: string, action: ServerAction): Promise<IServer>;
  /** The tools of an MCP server as last listed; `null` if not listed yet. Starts nothing. */
  listTools(name: string): Promise<IListedTool[] | null>;
  /** One of the tools, in full. */
  getTool(name: string, tool: string): Promise<IWholeTool>;
  /** Mark tools as seen, by their digests. */
  lookAtTools(server: string, digests: Record<string, string>): Promise<void>;
  /** Request a tool call without any code; it needs approval like any other. */
  callTool(
    server: string,
    tool: string,
    values: IJsonObject
  ): Promise<IApproval>;
  /** The outcome of such a call. */
  getCallEnd(server: string, id: string): Promise<ICallEnd>;
  /** A preview of adding a server. */
  previewServer(name: string, configuration: IJsonObject): Promise<IAddition>;
  /** Add a server to the configuration file as previewed. */
  addServer(
    name: string,
    configuration: IJsonObject,
    revision: string
  ): Promise<void>;
  /** The servers configured in other programs. */
  listOtherServers(): Promise<IOtherServer[]>;
  /** Request trust in an MCP server of the project; return the id of the approval request. */
  reviewServer(name: string): Promise<string>;
  /** Stop trusting an MCP server of the project. */
  distrustServer(name: string): Promise<void>;
  /** Begin a person's sign-in to a remote MCP server. */
  beginSignIn(name: string): Promise<ISignInPage>;
  /** Abandon a sign-in in progress. */
  cancelSignIn(name: string): Promise<void>;
  /** Sign out of a server. */
  signOut(name: string): Promise<void>;
  /** The rules in force, with the user's in editable form. */
  getPolicy(): Promise<IPolicy>;
  /** Replace a revision of the user's rules. */
  putPolicy(rules: IJsonObject[], revision: string): Promise<IPolicy>;
  /** The effect that a rule would have had on past calls. */
  tryRule(rule: IJsonObject): Promise<IDryRun>;
  /** A kernel's level of isolation, and the content security policy of pages with it. */
  getIsolation(kernelId: string): Promise<IIsolation>;
  /** How a kernel last ended unexpectedly; `null` if it never did. */
  getLastExit(kernelId: string): Promise<IKernelExit | null>;
  /** A page of agents' threads. */
  listThreads(query: IThreadQuery): Promise<IThreadPage>;
  /** A thread. */
  getThread(id: string): Promise<IThread>;
  /** Change a thread's name, or archive it. */
  updateThread(id: string, change: IThreadChange): Promise<void>;
  /** Copy a thread; the copy continues independently. */
  forkThread(id: string): Promise<void>;
  /** Delete a thread with all of its turns. */
  deleteThread(id: string): Promise<void>;
  /** The messages of a thread to and from the model. */
  getMessages(threadId: string): Promise<IModelMessage[]>;
  /** A turn with its items. */
  getTurn(id: string): Promise<ITurn>;
  /** Send a message to a working agent. */
  steerTurn(id: string, text: string): Promise<void>;
  /** Interrupt a turn. */
  interruptTurn(id: string): Promise<void>;
}

/** Calls the server extension with the browser's session. */
export class AgentBoxClient implements IAgentBoxClient {
  constructor(settings: ServerConnection.ISettings) {
    this._connection = new RestConnection(settings);
  }

  get isStopped(): boolean {
    return this._connection.isStopped;
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
    const page = await valueOf(response);
    const { items, next } = toList(page);
    const summaries = items.map(plain<IRequestSummary>);
    const atHub = toIdsAtHub(page);
    return { summaries, next, atHub, tag: response.headers.get('ETag') };
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
    // Not with `plain`: the limits in a schema keep every digit.
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

  async distrustServer(name: string): Promise<void> {
    const path = URLExt.join('servers', encodeURIComponent(name), 'trust');
    await this._connection.request('DELETE', path);
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

  async getLastExit(kernelId: string): Promise<IKernelExit | null> {
    const { last_end: end } = await this._getKernel(kernelId);
    return isObject(end) ? plain<IKernelExit>(end) : null;
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

/** The non-empty parts of a query. */
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
