/**
 * The objects of the REST API, as in `docs/reference`: one interface for each.
 */
import type { IJsonObject, JsonValue } from './json';

/** The status of a request; all but `pending` are final. */
export type Status =
  'pending' | 'approved' | 'rejected' | 'expired' | 'cancelled' | 'orphaned';

/** The answers that a person can give. */
export type Answer =
  'allow_once' | 'allow_always' | 'reject_once' | 'reject_always';

/** The state of an outcome. */
export type OutcomeState = 'running' | 'succeeded' | 'failed' | 'cancelled';

/** The state of an MCP server. */
export type ServerState =
  | 'needs_configuration'
  | 'needs_trust'
  | 'needs_sign_in'
  | 'stopped'
  | 'starting'
  | 'running'
  | 'failed';

/** Stands for long arguments that a response omits. */
export interface IOmission {
  /** Size as JSON, in bytes. */
  size: number;
  /** The first characters of the JSON. */
  head: string;
}

/** A tool call, exactly as it would run. */
export interface IToolCall {
  server: string;
  tool: string;
  /** Empty if they are omitted: check `omitted` first. */
  arguments: IJsonObject;
  /** Stands for the arguments if they are omitted. */
  omitted?: IOmission | null;
  digest: string;
  kernel_id: string | null;
  notebook_path: string | null;
  cell_id: string | null;
  thread_id?: string | null;
  /** Who made the call in the panel, without any code. */
  person?: string | null;
  /** Who may have made the call: the people whom the server saw send code to the kernel; empty if it saw nobody. */
  askers?: IAsker[];
  /** The kernel's level of isolation, as determined by the server, not by the kernel. */
  isolation?: string;
  /** Whether its sandbox has settings that its user chose, where an administrator could have. */
  has_own_settings?: boolean;
  /** Characters in the names that are not what they look like. */
  look_alikes?: ILookAlike[];
}

/** Somebody who ran code in the kernel that made the call. */
export interface IAsker {
  /** Empty for a token without a user. */
  name: string;
  kind: IReviewer['reviewer_kind'];
  display_name: string | null;
  via: Via;
  /** As in {@link IReviewer}. */
  token_note?: string | null;
}

/** A character in a name or a URL that is not what it looks like, as found by the server. */
export interface ILookAlike {
  of: string;
  code: string;
  name: string;
  /** What it looks like; empty if it is only from an alphabet that is unusual there. */
  like: string;
}

/** A tool, as described by its server; all of it is untrusted text. */
export interface IToolDescription {
  title: string;
  description: string;
  annotations: IJsonObject;
  input_schema: IJsonObject;
  /** Of a request only if it says which grant is void. */
  output_schema?: IJsonObject | null;
  /** For a pending request: whether it differs from the tool that somebody has reviewed. */
  mark?: 'new' | 'changed' | null;
}

/** How an answer arrived, as observed by the server. */
export type Via =
  | 'browser'
  | 'api_token'
  | 'server_token'
  | 'program'
  | 'mcp_client'
  | 'terminal'
  | 'model'
  | 'nobody'
  | 'unknown';

/** Who answered, and how the server knows. */
export interface IReviewer {
  reviewer: string;
  reviewer_kind: 'user' | 'service' | 'model';
  /** The person's display name, which they may choose themselves. */
  reviewer_name: string | null;
  via: Via;
  /** The note of the token at JupyterHub, which its user chose; not sent by older servers. */
  token_note?: string | null;
}

/** The calls to which a lasting answer applies. */
export type GrantScope =
  'call' | 'kernel' | 'thread' | 'user' | 'server-read-only';

/** The scope that a person chose for a lasting answer. */
export interface IGrantTerms {
  scope: GrantScope;
  until?: string | null;
  uses?: number | null;
}

/** The grant that answered a request, and who gave it. */
export interface IGrantUse extends IReviewer {
  id: string;
  scope: GrantScope;
  granted_at: string;
}

/** Why a grant is no longer valid. */
export type GrantVoid = 'definition' | 'server';

/** A grant that would have allowed a call if nothing had changed. */
export interface IVoidGrant {
  grant: IGrantUse;
  void: GrantVoid;
  /** The tool at the time of the grant, if known. */
  before: IToolDescription | null;
  /** How the server was started or reached at that time, and is now, if known and different. */
  server?: { before: string; now: string } | null;
}

/** A lasting answer. */
export interface IGrant extends IGrantUse {
  effect: 'allow' | 'deny';
  server: string;
  tool: string;
  tools: string[];
  kernel_id: string | null;
  notebook_path: string | null;
  thread_id: string | null;
  request_id: string;
  arguments_digest: string | null;
  reason: string;
  until: string | null;
  uses: number | null;
  used: number;
  last_used_at: string | null;
  void: GrantVoid | null;
}

/** The policy's evaluation of a call. */
export interface IEvaluation {
  effect: 'allow' | 'ask' | 'deny';
  rule: string | null;
  /** What the author of the rule wrote for people; not sent by older servers. */
  reason?: string | null;
  /** Whose rule it is; those of a session are written by nobody. Not sent by older servers. */
  layer?: string | null;
  /** The group at the Hub whose members approve the call, if there is one. */
  asks_group?: string;
  /** Which grants can allow the call if a site's rule asks about it and lets some; otherwise not sent. */
  grants?: 'kernel' | 'any';
  /** The grant that led to the effect. */
  grant?: IGrantUse | null;
  voided?: IVoidGrant | null;
}

/** The rule that decided, and its location. */
export interface IDecidingRule {
  rule: string;
  file: string | null;
  line: number | null;
}

/** A decision. */
export interface IDecision extends IReviewer {
  decision: Answer;
  reason: string;
  /** Whether the code is told the reason for allowing; not sent by older servers. */
  tell?: boolean;
  decided_at: string;
  /** The edited arguments that ran; `null` if they were not edited, or are omitted. */
  arguments: IJsonObject | null;
  /** Stands for the edited arguments if they are omitted; not sent by older servers. */
  omitted?: IOmission | null;
  digest: string;
  /** The grant that the decision created, or from which it came. */
  grant?: IGrantUse | null;
  /** The rule that decided, which its reviewer wrote while the call was pending; not sent by older servers. */
  rule?: IDecidingRule | null;
}

/** The progress that a running tool reports. */
export interface IProgress {
  progress: number;
  total: number | null;
  message: string;
}

/** A log message of the MCP server during a call. All of it is untrusted. */
export interface ILogMessage {
  level: string;
  logger: string;
  text: string;
}

/** The outcome of an approved call. */
export interface IOutcome {
  state: OutcomeState;
  started_at: string | null;
  finished_at: string | null;
  error: string;
  /** What the MCP server asked a person during the call. */
  questions?: IQuestionRecord[];
  progress?: IProgress | null;
  /** The latest ones, oldest first; not sent by older servers. */
  messages?: ILogMessage[];
  /** The Hub service’s review of a call of a central tool; missing from older servers. */
  review?: IHubReview | null;
}

/** The state of a review at the Hub service, as the service reports it. */
export interface IHubReview {
  status: Status;
  /** Groups whose members can answer; empty if the caller answers. */
  groups: string[];
  /** How many approvals are required. */
  count: number;
  approved_by: string[];
  expires_at: string | null;
  rejected_by: string | null;
  reason: string;
  /** The review's page at the service; only a path if the service does not know its public URL. */
  url: string | null;
}

/** The record of a server's question. */
export interface IQuestionRecord {
  mode: 'form' | 'url';
  message: string;
  url: string | null;
  action: QuestionAction;
  /** `null` if nobody answered. */
  reviewer: string | null;
}

/** A person's answer to a question. */
export type QuestionAction = 'accept' | 'decline' | 'cancel';

/** A question that an MCP server asks during a call. Message, schema and URL are untrusted. */
export interface IQuestion {
  id: string;
  request_id: string;
  server: string;
  tool: string;
  mode: 'form' | 'url';
  message: string;
  /** The schema of a form's values. */
  schema: IJsonObject | null;
  /** The URL of the page. */
  url: string | null;
  /** The number of running calls to which the question may belong. */
  calls: number;
  kernel_id: string | null;
  notebook_path: string | null;
  asked_at: string;
  expires_at: string | null;
}

/** The summary of a request that is pending at the Hub service. The names are untrusted. */
export interface IHubRequest {
  id: string;
  /** The user whose code made the call. */
  asked_by: string;
  server: string;
  tool: string;
  created_at: string;
  expires_at: string | null;
  /** The URL of the service's page on which it is decided. */
  url: string;
}

/** The requests at the Hub service that this server's user can decide. */
export interface IHubRequestList {
  /** Those that have waited longest, oldest first. */
  requests: readonly IHubRequest[];
  /** Their total number. */
  total: number;
  /** The URL of the service's page with all of them; `null` if unknown. */
  url: string | null;
  /** Why the list is unknown; `null` if it is known. */
  problem: string | null;
}

/** A request: a tool call that waits for a person, or has done so. */
export interface IApproval {
  id: string;
  status: Status;
  call: IToolCall;
  tool: IToolDescription;
  evaluation: IEvaluation;
  created_at: string;
  expires_at: string | null;
  /** When nothing could change it any more; `null` before, and where that is not known. */
  ended_at?: string | null;
  decision: IDecision | null;
  outcome: IOutcome | null;
  /** The arguments in the form that a notebook may save; `null` while the request is pending, or if it may save none. */
  saved?: ISavedCall | null;
}

/** A call's arguments in the form that a notebook saves. */
export interface ISavedCall {
  /** The call that ran, on one line. */
  call: string;
  /** The requested arguments that an edit changed. */
  replaced: string | null;
}

/** A page of requests, newest first. */
export interface IApprovalPage {
  approvals: IApproval[];
  next: string | null;
}

/** A request's id and status. */
export interface IRequestSummary {
  id: string;
  status: Status;
  digest: string;
  expires_at: string | null;
  /** When nothing could change it any more; `null` before, and where that is not known. */
  ended_at?: string | null;
}

/** A page of summaries, newest first. */
export interface ISummaryPage {
  summaries: readonly IRequestSummary[];
  next: string | null;
  /** With the first page: the running calls that wait at the Hub, oldest first; not sent by older servers. */
  atHub?: readonly string[];
  /** The page's `ETag`, if the server sent one. */
  tag?: string | null;
}

/** The result of one of several decisions. */
export interface IDecisionAnswer {
  id: string;
  /** The HTTP status code that the decision would have got on its own. */
  code: number;
  /** The request's present status; `null` if there is no such request, or the caller may not read it. */
  status: Status | null;
  /** The error code, or `null`. */
  reason: string | null;
  message: string;
  /** The invalid edited argument, or `null`. */
  parameter: string | null;
}

/** A configured MCP server. */
export interface IServer {
  name: string;
  state: ServerState;
  transport: string;
  error: string;
  protocol_version: string;
  tool_count: number | null;
  log: string[];
  /** The number of calls sent to it since Jupyter started. */
  calls: number;
  /** The last error, even if it is running again. */
  last_error: string;
  /** Whether its requests carry the token from a person's sign-in. */
  is_signed_in: boolean;
  /** Whether it is a server of the project's .mcp.json; not sent by older servers. */
  is_of_project?: boolean;
  /** Whether it starts because its entry is trusted; not sent by older servers. */
  is_trusted?: boolean;
  /** The page of the Hub service on which the person signs in; not sent by older servers. */
  sign_in_url?: string;
  /** Why the last sign-in failed; not sent by older servers. */
  sign_in_error?: string;
}

/** A sign-in in progress: the provider's page, which only a person opens. */
export interface ISignInPage {
  address: string;
  host: string;
  /** The URL to which the provider returns the browser. */
  redirect: string;
}

/** The summary of a tool, as last listed by its server; all of it is untrusted text. */
export interface IListedTool {
  name: string;
  title: string;
  description: string;
  annotations: IJsonObject;
  digest: string;
  /** Whether it differs from the tool that somebody has reviewed. */
  mark?: 'new' | 'changed' | null;
}

/** A listed tool in full. */
export interface IWholeTool extends IListedTool {
  input_schema: IJsonObject;
  output_schema: IJsonObject | null;
}

/** The outcome of a call that a person made in the panel; both are `null` before its end, or if it is unknown. */
export interface ICallEnd {
  known: boolean;
  result: IToolResult | null;
  error: string | null;
}

/** A tool's result; all of it is untrusted. */
export interface IToolResult {
  content: IJsonObject[];
  structured: JsonValue;
  is_error: boolean;
}

/** A server that could be added to the configuration. */
export interface IAddition {
  file: string;
  revision: string;
  /** The number of the first new line. */
  line: number;
  text: string;
  /** The exact command line, or the URL. */
  starts: string;
  notes: string[];
}

/** A server from another program's configuration. */
export interface IOtherServer {
  program: string;
  file: string;
  name: string;
  configuration: IJsonObject | null;
  notes: string[];
  refused: string;
  is_known: boolean;
}

/** A problem in a configuration file because of which a server cannot be used. */
export interface IConfigurationProblem {
  path: string;
  message: string;
  line: number | null;
  column: number | null;
  /** The number of the rule, from 1, if it is in one; not sent by older servers. */
  rule?: number;
}

/** All servers, and the problems in their configuration. */
export interface IServerList {
  servers: IServer[];
  problems: IConfigurationProblem[];
  /** The file with the user's servers; not sent by older servers. */
  file?: { path: string; document: string | null };
  /** The number of each server's tools that are new or changed since the last review, if there are any. */
  changed_tools?: Record<string, number>;
}

/** Why a kernel ended unexpectedly. */
export interface IKernelExit {
  /** Distinguishes this end from later ones of the same kernel. */
  id: string;
  at: string;
  /** A clause about the kernel, in English. */
  reason: string;
  /** The setting with the limit that ended it, if one did. */
  limit: string | null;
  /** The value of that setting: bytes, or processes and threads. */
  most: number | null;
  /** The name of the signal that killed its process, if no limit ended it. */
  signal: string | null;
  /** The exit status of its process, if neither a limit nor a signal ended it. */
  status: number | null;
  notebook_path: string | null;
}

/** The event for a changed request. */
export const APPROVAL_EVENT = 'https://events.jupyter-agentbox.org/approval/v1';

/** The event for a changed server. */
export const SERVERS_EVENT = 'https://events.jupyter-agentbox.org/servers/v1';

/** The event for a grant that was given, used or ended. */
export const GRANT_EVENT = 'https://events.jupyter-agentbox.org/grant/v1';

/** The event for a server's question that was asked or is over. */
export const QUESTION_EVENT = 'https://events.jupyter-agentbox.org/question/v1';

/** The event for a kernel that ended. */
export const KERNEL_EVENT = 'https://events.jupyter-agentbox.org/kernel/v1';

/** The MIME type of a card in an output: `{"request_id": string}`. */
export const CARD_MIME_TYPE = 'application/vnd.jupyter-agentbox.request+json';

/** The comm target of the kernel side. */
export const COMM_TARGET = 'jupyter_agentbox';

/** Whether a call would run code in a notebook's kernel. */
export function isCodeRun(call: Pick<IToolCall, 'server' | 'tool'>): boolean {
  return call.server === 'notebook' && call.tool === 'run_code';
}

/** Whether it records a change of rules, servers or grants: nothing was asked, and no code made a call. */
export function isChange(call: Pick<IToolCall, 'server' | 'tool'>): boolean {
  return call.server === 'agentbox' && call.tool !== 'register_mcp_server';
}

/** Whether an allowed call did not run: its caller was gone, or the Hub refused it. */
export function hasNotRun({
  state,
  started_at,
  review
}: Pick<IOutcome, 'state' | 'started_at' | 'review'>): boolean {
  const answer = review?.status ?? 'approved';
  if (state === 'failed') {
    return answer !== 'approved' && answer !== 'pending';
  }
  return state === 'cancelled' && !started_at;
}

/** The wire names of the server and the tool, in the form that people and rules use. */
export function qualifiedName(call: IToolCall): string {
  return `${call.server}.${call.tool}`;
}

/** A call in the record of all calls: a request without its tool. */
export interface IAuditRecord {
  id: string;
  status: Status;
  /** The call in one line, written by the server; untrusted. */
  signature: string;
  call: IToolCall;
  evaluation: IApproval['evaluation'];
  created_at: string;
  ended_at: string | null;
  decision: IApproval['decision'];
  outcome: Pick<
    IOutcome,
    'state' | 'error' | 'questions' | 'started_at' | 'review'
  > | null;
  /** How long the call ran; `null` if it did not run, or has not ended. */
  seconds: number | null;
}

/** The code that a cell would have with a person's edits, or why it is unknown. */
export interface ICellUpdate {
  source: string | null;
  reason: string | null;
}

/** A page of the record, newest first. */
export interface IAuditPage {
  records: IAuditRecord[];
  next: string | null;
  /** How far back a search for words went. */
  searched_until: string | null;
}

/** The server's answer about a kernel's isolation. */
export interface IIsolation {
  /** The kernel's level; `null` if it is unknown at present. */
  level: string | null;
  /** The Content-Security-Policy of a page with a sandboxed kernel; `null` if there is none. */
  policy: string | null;
}

/** Whether an allowed call has not started, because the Hub service still asks its approvers. */
export function waitsAtHub({ outcome }: IApproval): boolean {
  return outcome?.state === 'running' && outcome.review?.status === 'pending';
}
