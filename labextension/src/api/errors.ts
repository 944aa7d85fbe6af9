/**
 * Error responses of the REST API.
 */
import { isObject } from './json';
import type { JsonValue } from './json';
import { plain, toApproval } from './answers';
import type { IApproval, IConfigurationProblem } from './protocol';

/** The statuses with which a Hub, or its proxy, answers in place of a server that does not run. */
const STOPPED: ReadonlySet<number> = new Set([424, 502, 503, 504]);

/** The reason of a response that is no error, but has no JSON either: the page of a login, for example. */
const NO_JSON = 'no_json';

/** Whether an error says that the server does not run. Its own errors have a reason. */
export function isOfStopped({ status, reason }: RequestError): boolean {
  return STOPPED.has(status) && reason === null;
}

/** An error response. */
export class RequestError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly parameter: string | null,
    readonly approval: IApproval | null,
    readonly reason: string | null = null,
    /** What is wrong with submitted rules. */
    readonly problems: readonly IConfigurationProblem[] = []
  ) {
    super(message);
  }
}

/** The message of an error response, ours or not. */
export function toError(
  response: Response,
  json: JsonValue | undefined
): RequestError {
  const body = isObject(json) ? json : {};
  const { message, parameter, approval, reason, problems } = body;
  return new RequestError(
    response.ok ? 502 : response.status,
    typeof message === 'string' && message ? message : response.statusText,
    typeof parameter === 'string' ? parameter : null,
    isObject(approval) ? toApproval(approval) : null,
    typeof reason === 'string' ? reason : response.ok ? NO_JSON : null,
    Array.isArray(problems) ? plain(problems) : []
  );
}
