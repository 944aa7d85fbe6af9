/**
 * The queries and request bodies of the REST API.
 */
import type { IJsonObject } from './json';
import type { Answer, IGrantTerms, Status } from './protocol';

/** The body of a decision. */
export interface IDecisionBody {
  decision: Answer;
  digest: string;
  arguments?: IJsonObject;
  reason?: string;
  /** Whether the code is told the reason for allowing. */
  tell?: boolean;
  /** The scope of a lasting answer. */
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

/** Which records of calls to find; an empty field matches any. */
export type AuditQuery = Readonly<Record<string, string>>;

/** Which threads to list. */
export interface IThreadQuery {
  isArchived: boolean;
  cursor?: string | null;
}

/** The actions on an MCP server. */
export type ServerAction = 'start' | 'stop' | 'restart';

/** The fields of a thread that a person can change. */
export interface IThreadChange {
  name?: string;
  is_archived?: boolean;
}
