/**
 * Conversion of REST API responses to values of the protocol.
 */
import { isObject, stringify } from './json';
import type { JsonValue } from './json';
import type { IApproval } from './protocol';
import type { IPolicy } from './rules';

/** A page of a list of requests. */
export function toList(page: JsonValue): {
  items: JsonValue[];
  next: string | null;
} {
  const items = isObject(page) ? page['approvals'] : null;
  const next = isObject(page) ? page['next'] : null;
  return {
    items: Array.isArray(items) ? items : [],
    next: typeof next === 'string' ? next : null
  };
}

/** The ids of the running calls that wait at the Hub, which come with a page of summaries. */
export function toIdsAtHub(page: JsonValue): string[] {
  const ids = isObject(page) ? page['at_hub'] : null;
  return Array.isArray(ids) ? ids.filter(id => typeof id === 'string') : [];
}

/** The value as from `JSON.parse`, for fields whose digits are not shown. */
export function plain<T>(value: JsonValue): T {
  return JSON.parse(stringify(value)) as T;
}

/** The rules, with every digit of their conditions. */
export function toPolicy(value: JsonValue): IPolicy {
  const exact = value as unknown as IPolicy;
  const { rules, effective } = exact;
  return { ...plain<IPolicy>(value), rules, effective };
}

/** A request, with every digit of its arguments. */
export function toApproval(value: JsonValue): IApproval {
  const approval = plain<IApproval>(value);
  const exact = value as unknown as IApproval;
  approval.call.arguments = exact.call.arguments ?? {};
  if (approval.decision) {
    approval.decision.arguments = exact.decision?.arguments ?? null;
  }
  return approval;
}
