/**
 * What the REST API says, as `docs/reference` has it: one interface for each JSON object.
 */
import type { IJsonObject, JsonValue } from './json';

/** Where a request stands; all but `pending` are final. */
export type Status =
  'pending' | 'approved' | 'rejected' | 'expired' | 'cancelled' | 'orphaned';

/** What a person can answer. */
export type Answer =
  'allow_once' | 'allow_always' | 'reject_once' | 'reject_always';

/** What became of an approved call. */
export type OutcomeState = 'running' | 'succeeded' | 'failed' | 'cancelled';

/** How an MCP server is doing. */
export type ServerState =
  | 'needs_configuration'
  | 'needs_trust'
  | 'needs_sign_in'
  | 'stopped'
  | 'starting'
  | 'running'
  | 'failed';

/** What stands for long arguments that are not in an answer. */
export interface IOmission {
  /** Bytes as JSON. */
  size: number;
  /** The first characters as JSON. */
  head: string;
}

/** A tool call, exactly as it would run. */
export interface IToolCall {
  server: string;
  tool: string;
  /** Empty if they are omitted: look at `omitted` first. */
  arguments: IJsonObject;
  /** What stands for the arguments, if they are not here. */
  omitted?: IOmission | null;
  digest: string;
  kernel_id: string | null;
  notebook_path: string | null;
  cell_id: string | null;
  thread_id?: string | null;
  /** Who made the call without any code, in the panel. */
  person?: string | null;
  /** Who may have asked, as the server saw who sends code to the kernel; nobody if it did not see it. */
  askers?: IAsker[];
  /** How far the kernel is kept from the rest of the machine; the server says so, not the kernel. */
  isolation?: string;
  /** Letters in the names that are not what they look like. */
  look_alikes?: ILookAlike[];
}

/** Somebody who has had code run in the kernel that called. */
export interface IAsker {
  /** Empty for a token that has no user. */
  name: string;
  kind: IReviewer['reviewer_kind'];
  display_name: string | null;
  via: Via;
}

/** A letter of a name or an address that is not what it looks like, as the server found. */
export interface ILookAlike {
  of: string;
  code: string;
  name: string;
  /** What it looks like; empty if it only stands where its alphabet does not belong. */
  like: string;
}

/** A tool as its server describes it; all of it is untrusted text. */
export interface IToolDescription {
  title: string;
  description: string;
  annotations: IJsonObject;
  input_schema: IJsonObject;
  /** Of a request that waits: whether it is another one than somebody has looked at. */
  mark?: 'new' | 'changed' | null;
}

/** The way an answer came, as the server observed it. */
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

/** Who answered, and how that is known. */
export interface IReviewer {
  reviewer: string;
  reviewer_kind: 'user' | 'service' | 'model';
  /** What people call them; they may choose it themselves. */
  reviewer_name: string | null;
  via: Via;
}

/** Which calls a lasting answer is for. */
export type GrantScope =
  'call' | 'kernel' | 'thread' | 'user' | 'server-read-only';

/** What a person wants a lasting answer to be for. */
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

/** Why a grant no longer holds. */
export type GrantVoid = 'definition' | 'server';

/** A grant that would have allowed a call, had nothing changed. */
export interface IVoidGrant {
  grant: IGrantUse;
  void: GrantVoid;
  /** The tool as it was when the grant was given, if that is known. */
  before: IToolDescription | null;
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

/** What the policy said of a call. */
export interface IEvaluation {
  effect: 'allow' | 'ask' | 'deny';
  rule: string | null;
  /** The grant that gave the effect. */
  grant?: IGrantUse | null;
  voided?: IVoidGrant | null;
}

/** A rule that decided, and where it stands. */
export interface IDecidingRule {
  rule: string;
  file: string | null;
  line: number | null;
}

/** What was answered. */
export interface IDecision extends IReviewer {
  decision: Answer;
  reason: string;
  /** Whether the code is told the reason of an answer that allows; an older server does not say. */
  tell?: boolean;
  decided_at: string;
  /** The arguments that ran instead of those of the call; `null` if they were not edited, or are omitted. */
  arguments: IJsonObject | null;
  /** What stands for edited arguments, if they are not here; an older server does not say. */
  omitted?: IOmission | null;
  digest: string;
  /** The grant that this answer gave, or by which it was given. */
  grant?: IGrantUse | null;
  /** The rule that gave this answer: its reviewer wrote it while the call waited. An older server has none. */
  rule?: IDecidingRule | null;
}

/** How far a running tool says it is. */
export interface IProgress {
  progress: number;
  total: number | null;
  message: string;
}

/** What the server of a running call logs. All of it is untrusted. */
export interface ILogMessage {
  level: string;
  logger: string;
  text: string;
}

/** What became of an approved call. */
export interface IOutcome {
  state: OutcomeState;
  started_at: string | null;
  finished_at: string | null;
  error: string;
  /** What the server asked a person meanwhile. */
  questions?: IQuestionRecord[];
  progress?: IProgress | null;
  /** The last ones, oldest first; an older server does not send them. */
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

/** What is kept of a server's question. */
export interface IQuestionRecord {
  mode: 'form' | 'url';
  message: string;
  url: string | null;
  action: QuestionAction;
  /** `null` if nobody answered. */
  reviewer: string | null;
}

/** What a person makes of a question. */
export type QuestionAction = 'accept' | 'decline' | 'cancel';

/** What an MCP server asks while its tool runs. Message, schema and address are untrusted. */
export interface IQuestion {
  id: string;
  request_id: string;
  server: string;
  tool: string;
  mode: 'form' | 'url';
  message: string;
  /** Of a form's values. */
  schema: IJsonObject | null;
  /** The address of the page. */
  url: string | null;
  /** How many calls run of which the server may mean any. */
  calls: number;
  kernel_id: string | null;
  notebook_path: string | null;
  expires_at: string | null;
}

/** A request that waits at the Hub service, in short. The names are untrusted. */
export interface IHubRequest {
  id: string;
  /** The user whose code asks. */
  asked_by: string;
  server: string;
  tool: string;
  created_at: string;
  expires_at: string | null;
  /** The service's page of it, where it is decided. */
  url: string;
}

/** What waits at the Hub service for the user whose server this is. */
export interface IHubRequestList {
  /** Those that wait longest, oldest first. */
  requests: readonly IHubRequest[];
  /** How many wait in all. */
  total: number;
  /** The service's page of all; `null` if it is not known. */
  url: string | null;
  /** Why it is not known what waits; `null` if it is. */
  problem: string | null;
}

/** A tool call that waits for a person, or did. */
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
  /** What a notebook may save of the arguments; `null` while the request is pending, and if it may save none. */
  saved?: ISavedCall | null;
}

/** What a notebook saves of a call's arguments. */
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

/** Which request it is, and how it stands. */
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
  /** What the server calls this state of the page (its `ETag`), if it says so. */
  tag?: string | null;
}

/** What became of one of several decisions. */
export interface IDecisionAnswer {
  id: string;
  /** The status code of HTTP that the decision alone would have got. */
  code: number;
  /** The request's status now; `null` if there is none, or who asks may not read it. */
  status: Status | null;
  /** The code of the error, or `null`. */
  reason: string | null;
  message: string;
  /** The edited argument that does not fit, or `null`. */
  parameter: string | null;
}

/** One configured MCP server. */
export interface IServer {
  name: string;
  state: ServerState;
  transport: string;
  error: string;
  protocol_version: string;
  tool_count: number | null;
  log: string[];
  /** How many calls were sent to it since Jupyter was started. */
  calls: number;
  /** What went wrong last, also if it runs by now. */
  last_error: string;
  /** Whether its requests carry the token of a person's sign-in. */
  is_signed_in: boolean;
  /** Why the last sign-in came to nothing; an older server says nothing. */
  sign_in_error?: string;
}

/** A sign-in that was begun: the provider's page, which only a person opens. */
export interface ISignInPage {
  address: string;
  host: string;
  /** Where the provider sends the browser back to. */
  redirect: string;
}

/** A tool as its server listed it last, in brief; all of it is untrusted text. */
export interface IListedTool {
  name: string;
  title: string;
  description: string;
  annotations: IJsonObject;
  digest: string;
  /** Whether it is another one than somebody has looked at. */
  mark?: 'new' | 'changed' | null;
}

/** A listed tool as a whole. */
export interface IWholeTool extends IListedTool {
  input_schema: IJsonObject;
  output_schema: IJsonObject | null;
}

/** What became of a call that a person made in the panel: both `null` before its end, or if it is not known. */
export interface ICallEnd {
  known: boolean;
  result: IToolResult | null;
  error: string | null;
}

/** What a tool answered; all of it is untrusted. */
export interface IToolResult {
  content: IJsonObject[];
  structured: JsonValue;
  is_error: boolean;
}

/** A server that could be added to the configuration. */
export interface IAddition {
  file: string;
  revision: string;
  /** Where the new lines begin. */
  line: number;
  text: string;
  /** The exact command line, or the address. */
  starts: string;
  notes: string[];
}

/** A server that another program is configured with. */
export interface IOtherServer {
  program: string;
  file: string;
  name: string;
  configuration: IJsonObject | null;
  notes: string[];
  refused: string;
  is_known: boolean;
}

/** Something in a configuration file that keeps a server from being used. */
export interface IConfigurationProblem {
  path: string;
  message: string;
  line: number | null;
  column: number | null;
}

/** All servers, and what is wrong with their configuration. */
export interface IServerList {
  servers: IServer[];
  problems: IConfigurationProblem[];
  /** Where the user's servers stand; a server of an earlier version does not say. */
  file?: { path: string; document: string | null };
  /** How many tools of a server are new or changed since somebody looked, where there are any. */
  changed_tools?: Record<string, number>;
}

/** Why a kernel ended that nobody had asked to end. */
export interface IKernelEnd {
  /** Tells one end from the next of the same kernel. */
  id: string;
  at: string;
  /** A clause about the kernel; the server's words. */
  reason: string;
  /** The setting whose limit ended it, if one did. */
  limit: string | null;
  notebook_path: string | null;
}

/** The event that says that a request changed. */
export const APPROVAL_EVENT = 'https://events.jupyter-agentbox.org/approval/v1';

/** The event that says that a server changed. */
export const SERVERS_EVENT = 'https://events.jupyter-agentbox.org/servers/v1';

/** The event that says that a grant was given, used or ended. */
export const GRANT_EVENT = 'https://events.jupyter-agentbox.org/grant/v1';

/** The event that says that a server asks something, or that a question is over. */
export const QUESTION_EVENT = 'https://events.jupyter-agentbox.org/question/v1';

/** The event that says that a kernel ended. */
export const KERNEL_EVENT = 'https://events.jupyter-agentbox.org/kernel/v1';

/** The MIME type of a card in an output: `{"request_id": string}`. */
export const CARD_MIME_TYPE = 'application/vnd.jupyter-agentbox.request+json';

/** The comm target of the kernel side. */
export const COMM_TARGET = 'jupyter_agentbox';

/** Whether a call is to run code in a notebook's kernel. */
export function isCodeRun(call: Pick<IToolCall, 'server' | 'tool'>): boolean {
  return call.server === 'notebook' && call.tool === 'run_code';
}

/** Whether it stands in the record for a change of rules, servers or grants: nothing was asked, and no code called. */
export function isChange(call: Pick<IToolCall, 'server' | 'tool'>): boolean {
  return call.server === 'agentbox' && call.tool !== 'register_mcp_server';
}

/** The server's and the tool's wire names, as people and rules write them. */
export function qualifiedName(call: IToolCall): string {
  return `${call.server}.${call.tool}`;
}

/** A call as the record of all calls has it: a request without its tool. */
export interface IAuditRecord {
  id: string;
  status: Status;
  /** The call in one line, as the server writes it; untrusted. */
  signature: string;
  call: IToolCall;
  evaluation: IApproval['evaluation'];
  created_at: string;
  ended_at: string | null;
  decision: IApproval['decision'];
  outcome: Pick<IOutcome, 'state' | 'error' | 'questions'> | null;
  /** How long the call ran; `null` if it did not, or has not ended. */
  seconds: number | null;
}

/** What the code of a cell would be with a person's edits, or why that cannot be said. */
export interface ICellUpdate {
  source: string | null;
  reason: string | null;
}

/** A page of the record, newest first. */
export interface IAuditPage {
  records: IAuditRecord[];
  next: string | null;
  /** How far back a search for words looked. */
  searched_until: string | null;
}

/** What the server says of a kernel's isolation. */
export interface IIsolation {
  /** The level that the kernel reached; `null` if that is not known now. */
  level: string | null;
  /** The Content-Security-Policy of a page with a sandboxed kernel; `null` if there is none. */
  policy: string | null;
}
