/**
 * What the REST API is asked with: queries and bodies.
 */
import type { IJsonObject } from './json';
import type { Answer, IGrantTerms, Status } from './protocol';

/** What a decision's body has. */
export interface IDecisionBody {
  decision: Answer;
  digest: string;
  arguments?: IJsonObject;
  reason?: string;
  /** Whether the code is told the reason of an answer that allows. */
  tell?: boolean;
  /** Of a lasting answer: what it is for. */
  grant?: IGrantTerms;
}

/** One of several decisions. */
export interface INamedDecision extends IDecisionBody {
  id: string;
}

/** Which requests to list. */
export interface IApprovalQuery {
  status?: readonly Status[];
  ids?: readonly string[];
  limit?: number;
  cursor?: string | null;
}

/** Which records of calls to find; what is empty means any. */
export type AuditQuery = Readonly<Record<string, string>>;

/** Which threads to list. */
export interface IThreadQuery {
  isArchived: boolean;
  cursor?: string | null;
}

/** What can be done with an MCP server. */
export type ServerAction = 'start' | 'stop' | 'restart';

/** What of a thread a person can change. */
export interface IThreadChange {
  name?: string;
  is_archived?: boolean;
}
