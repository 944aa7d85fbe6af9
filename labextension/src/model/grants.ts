/**
 * The lasting answers that people gave.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { RequestError } from '../api/errors';
import type { IAgentBoxClient } from '../api/client';
import type { IGrant } from '../api/protocol';
import type { IGrantsModel } from '../internalTokens';

/** See `IGrantsModel`. */
export class GrantsModel implements IGrantsModel {
  constructor(
    private readonly _source: Pick<
      IAgentBoxClient,
      'listGrants' | 'revokeGrant'
    >
  ) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get grants(): readonly IGrant[] | null {
    return this._grants;
  }

  async refresh(): Promise<void> {
    const question = ++this._questions;
    try {
      const grants = await this._source.listGrants();
      if (question < this._answered) {
        return; // a later question was answered first
      }
      this._answered = question;
      if (JSON.stringify(grants) !== JSON.stringify(this._grants)) {
        this._grants = grants;
        this._changed.emit();
      }
    } catch {
      // The last answer stays; the approvals model says that the server is out of reach.
    }
  }

  async revoke(id: string): Promise<void> {
    try {
      await this._source.revokeGrant(id);
    } catch (error) {
      if (!(error instanceof RequestError && error.status === 404)) {
        throw error; // one that has ended is what was wanted
      }
    } finally {
      await this.refresh();
    }
  }

  private _answered = 0;
  private readonly _changed = new Signal<this, void>(this);
  private _grants: readonly IGrant[] | null = null;
  private _questions = 0;
}
