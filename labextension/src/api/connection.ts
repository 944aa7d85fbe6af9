/**
 * Requests to the REST API with the browser's session. The only state is the difference between the two clocks, and whether the server runs.
 */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import { isOfStopped, toError } from './errors';
import type { RequestError } from './errors';
import { parse } from './json';
import type { JsonValue } from './json';

/** Difference in milliseconds up to which the clocks count as equal. */
const NOISE = 2000;

/** Sends requests to the server extension. */
export class RestConnection {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  /** The server's base URL. */
  get baseUrl(): string {
    return this._settings.baseUrl;
  }

  /** Whether the last response said that the server does not run. */
  get isStopped(): boolean {
    return this._isStopped;
  }

  /** The server's current time in milliseconds, as estimated here. */
  now(): number {
    return Date.now() + this._skew;
  }

  /** The URL of a path. */
  url(path: string): string {
    return `${URLExt.join(this.baseUrl, 'jupyter-agentbox')}/${path}`;
  }

  /** Send a request; return the value in the response. */
  async request(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: string
  ): Promise<JsonValue> {
    const headers = { 'Content-Type': 'application/json' };
    const init = body === undefined ? {} : { body, headers };
    return valueOf(await this.send(method, path, init));
  }

  /** Send a request; return the raw response. */
  async send(
    method: string,
    path: string,
    init: RequestInit
  ): Promise<Response> {
    const asked = Date.now();
    const response = await ServerConnection.makeRequest(
      this.url(path),
      { ...init, method, cache: 'no-store' },
      this._settings
    );
    this._setClock(response, asked);
    this._isStopped =
      response.status >= 400 && isOfStopped(await errorOf(response.clone()));
    return response;
  }

  /** The `Date` header has whole seconds, so smaller differences, including those from the last estimate, are noise. */
  private _setClock(response: Response, asked: number): void {
    const date = Date.parse(response.headers.get('Date') ?? '');
    if (!Number.isNaN(date)) {
      const skew = date + 500 - (asked + Date.now()) / 2;
      if (Math.abs(skew - this._skew) > NOISE) {
        this._skew = Math.abs(skew) > NOISE ? skew : 0;
      }
    }
  }

  private _skew = 0;
  private _isStopped = false;
}

/** The value in a response. */
export async function valueOf(response: Response): Promise<JsonValue> {
  const text = await response.text();
  // A response without a body, as to DELETE, has no value.
  const json = response.ok && text === '' ? null : toJson(text);
  if (!response.ok || json === undefined) {
    throw toError(response, json);
  }
  return json;
}

async function errorOf(response: Response): Promise<RequestError> {
  return toError(response, toJson(await response.text()));
}

function toJson(text: string): JsonValue | undefined {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}
