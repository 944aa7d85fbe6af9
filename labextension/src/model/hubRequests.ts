/**
 * The summaries of the requests at the Hub service that the user can decide.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { RequestError } from '../api/errors';
import type { IAgentBoxClient } from '../api/client';
import type { IHubRequest, IHubRequestList } from '../api/protocol';
import type { IHubRequestsModel } from '../internalTokens';

const NOTHING: IHubRequestList = {
  requests: [],
  total: 0,
  url: null,
  problem: null
};

/** See `IHubRequestsModel`. */
export class HubRequestsModel implements IHubRequestsModel {
  constructor(
    private readonly _source: Pick<IAgentBoxClient, 'listHubRequests' | 'now'>
  ) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get list(): IHubRequestList {
    return this._list;
  }

  now(): number {
    return this._source.now();
  }

  async refresh(): Promise<boolean> {
    const number = ++this._asked;
    let found: IHubRequestList;
    try {
      found = await this._source.listHubRequests();
    } catch (error) {
      const isRefused = error instanceof RequestError && error.status === 403;
      if (isRefused && number > this._answered) {
        this._answered = number;
        this._set(NOTHING); // it is for somebody else, or for whom is not known
      }
      return false; // else the last answer stays; the requests of the server say that it is out of reach
    }
    if (number > this._answered) {
      this._answered = number;
      this._set(found.problem ? this._outdated(found.problem) : found);
    }
    return !found.problem;
  }

  /** The requests that were pending when the service last answered, without those that have expired since. */
  private _outdated(problem: string): IHubRequestList {
    const waits = ({ expires_at: end }: IHubRequest): boolean =>
      end === null || Date.parse(end) > this.now();
    const requests = this._list.requests.filter(waits);
    const total =
      this._list.total - (this._list.requests.length - requests.length);
    return { ...this._list, requests, total, problem };
  }

  private _set(list: IHubRequestList): void {
    if (JSON.stringify(list) !== JSON.stringify(this._list)) {
      this._list = list;
      this._changed.emit();
    }
  }

  private _answered = 0;
  private _asked = 0;
  private readonly _changed = new Signal<this, void>(this);
  private _list = NOTHING;
}
