/**
 * The MCP servers and their states.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IAgentBoxClient } from '../api/client';
import type { ServerAction } from '../api/queries';
import type { IJsonObject } from '../api/json';
import type {
  IAddition,
  ICallEnd,
  IListedTool,
  IOtherServer,
  IServerList,
  ISignInPage,
  IWholeTool
} from '../api/protocol';
import type { IServersModel } from '../internalTokens';

/** See `IServersModel`. */
export class ServersModel implements IServersModel {
  constructor(
    private readonly _source: Pick<
      IAgentBoxClient,
      | 'listServers'
      | 'runServer'
      | 'reviewServer'
      | 'distrustServer'
      | 'beginSignIn'
      | 'cancelSignIn'
      | 'signOut'
      | 'listTools'
      | 'getTool'
      | 'callTool'
      | 'lookAtTools'
      | 'getCallEnd'
      | 'previewServer'
      | 'addServer'
      | 'listOtherServers'
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

  async run(name: string, action: ServerAction): Promise<void> {
    await this._andRefresh(this._source.runServer(name, action));
  }

  listTools(name: string): Promise<IListedTool[] | null> {
    return this._source.listTools(name);
  }

  getTool(name: string, tool: string): Promise<IWholeTool> {
    return this._source.getTool(name, tool);
  }

  async lookAtTools(
    server: string,
    digests: Record<string, string>
  ): Promise<void> {
    await this._source.lookAtTools(server, digests);
    await this.refresh();
  }

  async callTool(
    server: string,
    tool: string,
    values: IJsonObject
  ): Promise<string> {
    return (await this._source.callTool(server, tool, values)).id;
  }

  getCallEnd(server: string, id: string): Promise<ICallEnd> {
    return this._source.getCallEnd(server, id);
  }

  previewServer(name: string, configuration: IJsonObject): Promise<IAddition> {
    return this._source.previewServer(name, configuration);
  }

  async addServer(
    name: string,
    configuration: IJsonObject,
    revision: string
  ): Promise<void> {
    await this._source.addServer(name, configuration, revision);
    await this.run(name, 'start');
  }

  listOtherServers(): Promise<IOtherServer[]> {
    return this._source.listOtherServers();
  }

  beginSignIn(name: string): Promise<ISignInPage> {
    // The list no longer says why the last sign-in failed.
    return this._andRefresh(this._source.beginSignIn(name));
  }

  cancelSignIn(name: string): Promise<void> {
    return this._source.cancelSignIn(name);
  }

  signOut(name: string): Promise<void> {
    return this._andRefresh(this._source.signOut(name));
  }

  review(name: string): Promise<string> {
    return this._andRefresh(this._source.reviewServer(name));
  }

  distrust(name: string): Promise<void> {
    return this._andRefresh(this._source.distrustServer(name));
  }

  /** Wait for a change and then for the list, even if the change failed. */
  private async _andRefresh<T>(change: Promise<T>): Promise<T> {
    try {
      return await change;
    } finally {
      await this.refresh();
    }
  }

  private _answered = 0;
  private readonly _changed = new Signal<this, void>(this);
  private _list: IServerList | null = null;
  private _questions = 0;
}
