/**
 * The MCP servers and how they are doing.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IAgentBoxClient } from '../api/client';
import type { IServerList } from '../api/protocol';
import type { IServersModel } from '../tokens';

/** See `IServersModel`. */
export class ServersModel implements IServersModel {
  constructor(
    private readonly _source: Pick<
      IAgentBoxClient,
      'listServers' | 'restartServer'
    >
  ) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get list(): IServerList | null {
    return this._list;
  }

  async refresh(): Promise<void> {
    try {
      this._list = await this._source.listServers();
      this._changed.emit();
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

  private readonly _changed = new Signal<this, void>(this);
  private _list: IServerList | null = null;
}
