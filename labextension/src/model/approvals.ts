/**
 * The state of all requests that this page knows. An event is only a hint; the truth comes from REST responses.
 */
import type { IDisposable } from '@lumino/disposable';
import { Throttler } from '@lumino/polling';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { RequestError, isOfStopped } from '../api/errors';
import type { IAgentBoxClient } from '../api/client';
import type {
  IApproval,
  IDecisionAnswer,
  IRequestSummary,
  ISummaryPage
} from '../api/protocol';
import { waitsAtHub } from '../api/protocol';
import { KnownApprovals } from './knownApprovals';
import { isAsKnown, lapsed } from './summaries';
import type {
  Connection,
  IApprovalModel,
  IKnownApproval,
  PersonalAnswer
} from '../internalTokens';

/** The part of a client that the model needs; a test provides its own. */
export type ApprovalSource = Pick<
  IAgentBoxClient,
  | 'listApprovals'
  | 'listSummaries'
  | 'getApproval'
  | 'decide'
  | 'decideAll'
  | 'extend'
  | 'now'
>;

/** The number of summaries of requests to fetch at once. */
const PAGE_SIZE = 500;

/** The number of requests to fetch by id at once. */
const MAX_IDS = 100;

/** The number of summaries to fetch by id at once: for some proxies, a URL with more ids is too long. */
const MAX_SUMMARY_IDS = 300;

/** Up to this number, hinted requests are fetched by id; if there are more, all pending requests are fetched again. */
const MAX_HINTS = 100;

/** Events within this time, in milliseconds, lead to a single round of requests to the server. */
const HINT_INTERVAL = 100;

/** The number of decisions that the server accepts at once. */
const MAX_DECISIONS = 500;

/** What the server lists as waiting. */
interface IWaiting {
  waiting: IRequestSummary[];
  atHub: ReadonlySet<string>;
}

/** See `IApprovalModel`. */
export class ApprovalModel implements IApprovalModel, IDisposable {
  constructor(private readonly _source: ApprovalSource) {
    this._known = new KnownApprovals({
      changed: id => this._emitChanged(id),
      arrived: approvals => this._arrived.emit(approvals),
      settled: approval => this._settled.emit(approval)
    });
    this._hints = new Throttler(() => this._follow(), {
      limit: HINT_INTERVAL,
      edge: 'trailing'
    });
  }

  get changed(): ISignal<this, string | null> {
    return this._changed;
  }

  get arrived(): ISignal<this, readonly IApproval[]> {
    return this._arrived;
  }

  get settled(): ISignal<this, IApproval> {
    return this._settled;
  }

  get finished(): ISignal<this, string> {
    return this._finished;
  }

  get connection(): Connection {
    return this._connection;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  get pending(): readonly IApproval[] {
    return this._known.pending;
  }

  get atHub(): readonly IApproval[] {
    return this._known.atHub;
  }

  /** Whether a request that is shown may still change. Of calls at the Hub without a card, only the number is shown. */
  get isBusy(): boolean {
    return this._known.open.some(each => !this._isOnlyCounted(each));
  }

  dispose(): void {
    this._isDisposed = true;
    this._known.dispose();
    this._hints.dispose();
    Signal.clearData(this);
  }

  now(): number {
    return this._source.now();
  }

  get(id: string): IKnownApproval {
    return this._known.get(id);
  }

  track(id: string): IDisposable {
    const tracked = this._known.track(id);
    if (this._known.isLacking(id)) {
      this._wantSoon(id);
    }
    return tracked;
  }

  async decide(shown: IApproval, answer: PersonalAnswer): Promise<void> {
    if (shown.call.omitted) {
      throw new Error('a request is decided by who has seen all of it');
    }
    await this._known.ask(async question => {
      try {
        const { digest } = shown.call;
        const body = { ...answer, digest };
        this._known.put([await this._source.decide(shown.id, body)], question);
      } catch (error) {
        if (error instanceof RequestError && error.approval) {
          this._known.put([error.approval], question);
        } else {
          // Whether the answer came through is not known: ask what is true now.
          void this.load(shown.id);
        }
        throw error;
      }
    });
  }

  async extend(id: string): Promise<boolean> {
    const before = this._known.find(id)?.expires_at;
    try {
      await this._known.ask(async question => {
        this._known.put([await this._source.extend(id)], question);
      });
    } catch {
      void this.load(id);
      return false;
    }
    return this._known.find(id)?.expires_at !== before;
  }

  async decideAll(
    shown: readonly IApproval[],
    answer: PersonalAnswer
  ): Promise<IDecisionAnswer[]> {
    // What is rejected does not run, so it may be rejected unread.
    const isRead = shown.every(({ call }) => !call.omitted);
    if (!isRead && answer.decision !== 'reject_once') {
      throw new Error('a request is decided by who has seen all of it');
    }
    const answers: IDecisionAnswer[] = [];
    try {
      for (let start = 0; start < shown.length; start += MAX_DECISIONS) {
        const part = shown.slice(start, start + MAX_DECISIONS);
        const decisions = part.map(({ id, call: { digest } }) => ({
          ...answer,
          id,
          digest
        }));
        answers.push(...(await this._source.decideAll(decisions)));
      }
    } finally {
      // If there was no reply, too: whether the answers came through is not known.
      await this._fetchAll(shown.map(({ id }) => id));
    }
    return answers;
  }

  async load(id: string): Promise<void> {
    const running = this._fetching.get(id);
    if (running) {
      // The answer under way may be older than the reason to ask: ask once more after it.
      this._again.add(id);
      return running;
    }
    const fetching = this._loadOnce(id).finally(() => {
      this._fetching.delete(id);
    });
    this._fetching.set(id, fetching);
    await fetching;
    if (this._again.delete(id) && this._known.find(id)) {
      await this.load(id);
    }
  }

  remember(approvals: readonly IApproval[]): void {
    this._known.remember(approvals);
  }

  /** Handle an event about a changed request. If the request is unknown and not pending, only its existence matters. */
  hint(id: string, status?: string): void {
    const isKnown =
      this._known.find(id) !== undefined || this._known.isTracked(id);
    if (!isKnown && status !== undefined && status !== 'pending') {
      this._finished.emit(id);
      return;
    }
    this._hinted.add(id);
    this._followSoon();
  }

  refresh(): Promise<void> {
    if (!this._refreshing) {
      this._refreshing = this._refreshOnce().finally(() => {
        this._refreshing = null;
      });
      return this._refreshing;
    }
    // The answer under way may be older than the reason to ask: all who ask meanwhile get one more after it.
    const again = (): Promise<void> => {
      this._nextRefresh = null;
      return this.refresh();
    };
    this._nextRefresh ??= this._refreshing.then(again, again);
    return this._nextRefresh;
  }

  private async _refreshOnce(): Promise<void> {
    const before = this._known.open;
    let waiting: IRequestSummary[];
    let atHub: ReadonlySet<string>;
    try {
      ({ waiting, atHub } = await this._known.ask(() => this._listWaiting()));
      this._setConnection('connected');
    } catch (error) {
      this._setConnection(connectionAfter(error));
      return;
    }
    // What was open and is not pending any more became something else: ask what.
    const pending = new Set(waiting.map(({ id }) => id));
    await this._fetchListed([
      ...waiting
        .filter(each => !isAsKnown(each, this._known.find(each.id)))
        .map(({ id }) => id),
      ...[...atHub].filter(id => !this._known.find(id))
    ]);
    const isStill = (each: IApproval): boolean =>
      pending.has(each.id) || (atHub.has(each.id) && this._isOnlyCounted(each));
    const others = before.filter(each => !isStill(each)).map(({ id }) => id);
    const retries = this._known.unreachable;
    const left = await this._fetchLapsed(others);
    await this._fetchAll([...left, ...retries]);
  }

  /**
   * Learn from summaries which of many requests ended without an answer, as when a cell is interrupted. Returns the
   * others.
   */
  private async _fetchLapsed(ids: readonly string[]): Promise<string[]> {
    if (ids.length <= MAX_IDS) {
      return [...ids];
    }
    const left = new Set(ids);
    for (let start = 0; start < ids.length; start += MAX_SUMMARY_IDS) {
      const part = ids.slice(start, start + MAX_SUMMARY_IDS);
      try {
        await this._known.ask(async question => {
          const query = { ids: part, limit: part.length };
          const { summaries } = await this._source.listSummaries(query);
          const ended = summaries.flatMap(
            each => lapsed(each, this._known.find(each.id)) ?? []
          );
          this._known.put(ended, question);
          ended.forEach(({ id }) => left.delete(id));
        });
      } catch {
        break; // it is asked for whole, and what fails then is said
      }
    }
    return [...left];
  }

  /** Whether a call waits at the Hub and has no card on this page. */
  private _isOnlyCounted(approval: IApproval): boolean {
    return waitsAtHub(approval) && !this._known.isTracked(approval.id);
  }

  /** The requests that wait here, and the ids of the calls that wait at the Hub. */
  private async _listWaiting(): Promise<IWaiting> {
    const pages = new Map<string | null, ISummaryPage>();
    let cursor: string | null = null;
    do {
      const query = { status: ['pending'] as const, limit: PAGE_SIZE, cursor };
      // Most of the time nothing is new: then the server says only that.
      const page: ISummaryPage = await this._source.listSummaries(
        query,
        this._listed.get(cursor)
      );
      pages.set(cursor, page);
      cursor = page.next;
    } while (cursor);
    this._listed = pages;
    return {
      waiting: [...pages.values()].flatMap(({ summaries }) => summaries),
      atHub: new Set(pages.get(null)?.atHub)
    };
  }

  /** Follow the hints, and then those that arrive meanwhile: the throttler ignores calls while one is in progress. */
  private _followSoon(): void {
    if (this._isFollowing) {
      return;
    }
    this._isFollowing = true;
    this._hints
      .invoke()
      // A call that waits in the throttler when the page goes is rejected.
      .catch(() => undefined)
      .finally(() => {
        this._isFollowing = false;
        if (this._hinted.size > 0 && !this._isDisposed) {
          this._followSoon();
        }
      });
  }

  private async _follow(): Promise<void> {
    const ids = [...this._hinted];
    this._hinted.clear();
    if (ids.length > MAX_HINTS) {
      await this.refresh();
    } else {
      await this._fetchAll(ids);
    }
  }

  /** Fetch a request together with all others that are requested in this turn of the event loop. */
  private _wantSoon(id: string): void {
    this._wanted.add(id);
    if (this._wanted.size === 1) {
      queueMicrotask(() => {
        const ids = [...this._wanted].filter(each => this._isWanting(each));
        this._wanted.clear();
        void this._fetchAll(ids);
      });
    }
  }

  /** Whether a request still has to be fetched: another response may have contained it. */
  private _isWanting(id: string): boolean {
    return !this._fetching.has(id) && this._known.isLacking(id);
  }

  private async _fetchAll(ids: readonly string[]): Promise<void> {
    const [first] = ids;
    if (first !== undefined && ids.length === 1) {
      await this.load(first);
    } else {
      await this._fetchListed(ids);
    }
  }

  /** Fetch requests in the form of lists. */
  private async _fetchListed(ids: readonly string[]): Promise<void> {
    for (let start = 0; start < ids.length; start += MAX_IDS) {
      await this._fetchByIds(ids.slice(start, start + MAX_IDS));
    }
  }

  private async _fetchByIds(ids: readonly string[]): Promise<void> {
    try {
      await this._known.ask(async question => {
        const limit = ids.length;
        const page = await this._source.listApprovals({ ids, limit });
        this._known.put(page.approvals, question);
        const found = new Set(page.approvals.map(({ id }) => id));
        for (const id of ids.filter(each => !found.has(each))) {
          this._known.lose(id);
        }
      });
    } catch {
      for (const id of ids) {
        this._known.fail(id);
      }
      return;
    }
    for (const id of ids) {
      const isCut = this._known.find(id) && this._known.isLacking(id);
      if (isCut && this._known.isTracked(id)) {
        await this.load(id);
      }
    }
  }

  private async _loadOnce(id: string): Promise<void> {
    try {
      await this._known.ask(async question => {
        this._known.put([await this._source.getApproval(id)], question, true);
      });
    } catch (error) {
      if (error instanceof RequestError && error.status === 404) {
        this._known.lose(id);
      } else {
        this._known.fail(id);
      }
    }
  }

  private _emitChanged(id: string | null): void {
    if (!this._isDisposed) {
      this._changed.emit(id);
    }
  }

  private _setConnection(connection: Connection): void {
    if (this._connection !== connection) {
      this._connection = connection;
      this._emitChanged(null);
    }
  }

  private readonly _again = new Set<string>();
  private readonly _arrived = new Signal<this, readonly IApproval[]>(this);
  private readonly _changed = new Signal<this, string | null>(this);
  private _connection: Connection = 'connecting';
  private readonly _fetching = new Map<string, Promise<void>>();
  private readonly _finished = new Signal<this, string>(this);
  private readonly _hinted = new Set<string>();
  private readonly _hints: Throttler;
  private _isDisposed = false;
  private _isFollowing = false;
  private readonly _known: KnownApprovals;
  /** The pages of the last list, by their cursors. */
  private _listed: ReadonlyMap<string | null, ISummaryPage> = new Map();
  private _nextRefresh: Promise<void> | null = null;
  private _refreshing: Promise<void> | null = null;
  private readonly _settled = new Signal<this, IApproval>(this);
  private readonly _wanted = new Set<string>();
}

/** What a failed request says about the server. */
function connectionAfter(error: unknown): Connection {
  if (!(error instanceof RequestError)) {
    return 'unreachable';
  }
  if (error.status === 404) {
    return 'absent';
  }
  if (error.reason === 'not_authorized') {
    return 'not_authorized';
  }
  if (error.status === 401 || error.status === 403) {
    return 'forbidden';
  }
  return isOfStopped(error) ? 'stopped' : 'failing';
}
