/**
 * The MCP servers and how they are doing.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IAgentBoxClient } from '../api/client';
import type { IServerList } from '../api/protocol';
import type { IServersModel } from '../internalTokens';

/** See `IServersModel`. */
export class ServersModel implements IServersModel {
  constructor(
    private readonly _source: Pick<
      IAgentBoxClient,
      'listServers' | 'restartServer' | 'reviewServer'
    >
  ) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get list(): IServerList | null {
    return this._list;
  }

  async refresh(): Promise<void> {
    const question = ++this._questions;
    try {
      const list = await this._source.listServers();
      if (question < this._answered) {
        return; // a later question was answered first
      }
      this._answered = question;
      if (JSON.stringify(list) !== JSON.stringify(this._list)) {
        this._list = list;
        this._changed.emit();
      }
    } catch {
      // The last answer stays; the approvals model says that the server is out of reach.
    }
  }

  async restart(name: string): Promise<void> {
    try {
      await this._source.restartServer(name);
    } finally {
      await this.refresh();
    }
  }

  async review(name: string): Promise<void> {
    try {
      await this._source.reviewServer(name);
    } finally {
      await this.refresh();
    }
  }

  private _answered = 0;
  private readonly _changed = new Signal<this, void>(this);
  private _list: IServerList | null = null;
  private _questions = 0;
}
