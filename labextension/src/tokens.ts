/**
 * What other extensions can use. Nothing here decides a request: a decision is a person's, at a card.
 */
import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';

import type { Status } from './api/protocol';

export type { Status } from './api/protocol';

/** What other extensions are told of a request: what is called, from where, and where it stands. */
export interface IApprovalSummary {
  readonly id: string;
  readonly status: Status;
  /** The MCP server's name. It is untrusted text, like the tool's. */
  readonly server: string;
  readonly tool: string;
  readonly kernelId: string | null;
  readonly notebookPath: string | null;
  readonly cellId: string | null;
  /** When the call began to wait, in ISO 8601. */
  readonly createdAt: string;
  /** When it stops waiting by itself; `null` if it never does. */
  readonly expiresAt: string | null;
}

/** The approval requests that this page knows, to read. */
export interface IApprovals {
  /** Emits when a request, or the connection to the server, changed. */
  readonly changed: ISignal<IApprovals, void>;
  /** Emits requests that began to wait; never one twice. */
  readonly arrived: ISignal<IApprovals, readonly IApprovalSummary[]>;
  /** Whether the server answered when it was last asked. */
  readonly isConnected: boolean;
  /** The requests that wait, oldest first: in the order in which code asked. */
  readonly pending: readonly IApprovalSummary[];
  /** A request that waits or is on this page; `null` if it is not known here. */
  get(id: string): IApprovalSummary | null;
}

/** A section of the side panel, which is a tab or a part of one. */
export interface IPanelSection {
  /** Unique in the panel. */
  readonly id: string;
  /** The title, in the language of the page: of the tab, too, if it has one of its own. */
  readonly label: string;
  /** Sections stand in the order of their ranks: what waits at the Hub has 95, requests have 100, the history 200, servers 300, rules 350, lasting answers 360, agents 400. */
  readonly rank: number;
  /**
   * The id of the section whose tab it shares: `pending`, `history`, `servers`, `rules`, `threads`, or another
   * extension's. Without, it has a tab of its own.
   */
  readonly tab?: string;
  /** The content. It belongs to the panel and is disposed with the section. */
  readonly widget: Widget;
}

/** A section that was added. Disposing it takes it out of the panel. */
export interface ISectionHandle extends IDisposable {
  /** How many things in it wait for a person: shown at its tab, and in sum at the panel's own. */
  count: number;
  /** What is wrong in it, which its tab marks and says; empty if nothing is. */
  problem: string;
  /** Show the tab that it is in. */
  expand(): void;
}

/** The side panel. */
export interface IAgentBoxPanel {
  /** Whether the panel is on screen. */
  readonly isOnScreen: boolean;
  /** Show the panel and leave the focus where it is. */
  reveal(): void;
  /** Move the focus into the panel, unless it is there. */
  takeFocus(): void;
  /** Add a section. Throws if there is one of that id. */
  addSection(section: IPanelSection): ISectionHandle;
}

/** The token of `IApprovals`. */
export const IApprovals = new Token<IApprovals>(
  'jupyter-agentbox:IApprovals',
  'The approval requests that this page knows, to read.'
);

/** The token of `IAgentBoxPanel`. */
export const IAgentBoxPanel = new Token<IAgentBoxPanel>(
  'jupyter-agentbox:IAgentBoxPanel',
  'The side panel, to which sections can be added.'
);
