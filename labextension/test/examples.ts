/**
 * Requests for tests.
 */
import { Signal } from '@lumino/signaling';

import type {
  IApproval,
  IHubRequest,
  IHubRequestList,
  IQuestion,
  IRequestSummary
} from '../src/api/protocol';
import type { IOrigins } from '../src/internalTokens';
import type { ApprovalSource } from '../src/model/approvals';
import { languageOf } from '../src/ui/text/language';

/** The language of the source. */
export const language = languageOf(null);

/** Strings as they are written in the source. */
export const { trans } = language;

/** A pending request, with some fields replaced. */
export function approval(fields: Partial<IApproval> = {}): IApproval {
  return {
    id: 'a1',
    status: 'pending',
    call: {
      server: 'shop',
      tool: 'delete_order',
      arguments: { order_id: 7 },
      digest: 'd1',
      kernel_id: 'k1',
      notebook_path: 'orders.ipynb',
      cell_id: 'c1'
    },
    tool: {
      title: 'Delete an order',
      description: '',
      annotations: {},
      input_schema: {
        type: 'object',
        properties: { order_id: { type: 'integer' } }
      }
    },
    evaluation: { effect: 'ask', rule: null },
    created_at: '2026-01-01T00:00:00Z',
    expires_at: null,
    decision: null,
    outcome: null,
    ...fields
  };
}

/** An allowed call that waits for groups of approvers at the Hub service. */
export function approvalAtHub(
  fields: Partial<IApproval> = {},
  groups = ['keepers']
): IApproval {
  const review = {
    status: 'pending' as const,
    groups,
    count: 1,
    approved_by: [],
    expires_at: null,
    rejected_by: null,
    reason: '',
    url: null
  };
  const outcome = {
    state: 'running' as const,
    started_at: null,
    finished_at: null,
    error: '',
    review
  };
  return approval({ status: 'approved', outcome, ...fields });
}

/** A request of ada's that waits at the Hub service, with some fields replaced. */
export function hubRequest(fields: Partial<IHubRequest> = {}): IHubRequest {
  return {
    id: 'a',
    asked_by: 'ada',
    server: 'shop',
    tool: 'delete_order',
    created_at: '2026-01-01T00:00:00Z',
    expires_at: '2026-01-01T01:00:00Z',
    url: 'https://hub.example.org/services/agentbox/requests/a',
    ...fields
  };
}

/** What the Hub service says. */
export function hubList(
  requests: IHubRequest[],
  total = requests.length
): IHubRequestList {
  const url = 'https://hub.example.org/services/agentbox/';
  return { requests, total, url, problem: null };
}

/** A server that lists nothing and at which nobody decides, with some answers replaced. */
export function source(answers: Partial<ApprovalSource> = {}): ApprovalSource {
  const nobody = (): Promise<never> =>
    Promise.reject(new Error('nobody decides here'));
  return {
    listApprovals: () => Promise.resolve({ approvals: [], next: null }),
    listSummaries: () => Promise.resolve({ summaries: [], next: null }),
    getApproval: id => Promise.resolve(approval({ id })),
    decide: nobody,
    extend: nobody,
    decideAll: nobody,
    now: () => 0,
    ...answers
  };
}

/** Cells that are all in view, of kernels that stay. */
export const origins: IOrigins = {
  closed: new Signal<IOrigins, void>({} as IOrigins),
  kernelsChanged: new Signal<IOrigins, void>({} as IOrigins),
  isOpen: () => false,
  hasPlace: ({ call }) => call.notebook_path !== null,
  isInView: () => true,
  describe: () => 'orders.ipynb, cell 3',
  cellOf: () => null,
  reveal: () => Promise.resolve(true),
  describePlace: () => '',
  revealPlace: () => Promise.resolve(true)
};

/** A question of a server, with some fields replaced. */
export function question(fields: Partial<IQuestion> = {}): IQuestion {
  return {
    id: 'q1',
    request_id: 'r1',
    server: 'shop',
    tool: 'order',
    mode: 'form',
    message: 'How many?',
    schema: {
      type: 'object',
      properties: { count: { type: 'integer' } },
      required: ['count']
    },
    url: null,
    calls: 1,
    kernel_id: 'k1',
    notebook_path: 'orders.ipynb',
    asked_at: '2026-01-01T00:02:00Z',
    expires_at: null,
    ...fields
  };
}

/** What a list of summaries says of a request. */
export function summaryOf({
  id,
  status,
  call,
  expires_at,
  ended_at
}: IApproval): IRequestSummary {
  return { id, status, digest: call.digest, expires_at, ended_at };
}

/** The same request after Ada allowed it. */
export function allowed(fields: Partial<IApproval> = {}): IApproval {
  return approval({
    status: 'approved',
    decision: {
      decision: 'allow_once',
      reviewer: 'ada',
      reviewer_kind: 'user',
      reviewer_name: null,
      via: 'browser',
      reason: '',
      decided_at: '2026-01-01T00:01:00Z',
      arguments: null,
      digest: 'd1'
    },
    ...fields
  });
}
