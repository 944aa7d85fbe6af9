/**
 * The tokens for other extensions. Nothing here decides a request: only a person does, at a card.
 */
import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';

import type { Status } from './api/protocol';

export type { Status } from './api/protocol';

/** A request, as other extensions see it: what is called, from where, and its status. */
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
  /** When it expires; `null` if it never does. */
  readonly expiresAt: string | null;
}

/** The approval requests that this page knows, read-only. */
export interface IApprovals {
  /** Emits when a request, or the connection to the server, has changed. */
  readonly changed: ISignal<IApprovals, void>;
  /** Emits new pending requests, each once. */
  readonly arrived: ISignal<IApprovals, readonly IApprovalSummary[]>;
  /** Whether the server answered when it was last asked. */
  readonly isConnected: boolean;
  /** The pending requests, oldest first: in the order in which the calls were made. */
  readonly pending: readonly IApprovalSummary[];
  /** A request that is pending or shown on this page; `null` if it is unknown here. */
  get(id: string): IApprovalSummary | null;
}

/** A section of the side panel, which is a tab or part of one. */
export interface IPanelSection {
  /** Unique in the panel. */
  readonly id: string;
  /** The title, in the language of the page; also of the tab, if the section has its own. */
  readonly label: string;
  /** Sections are ordered by rank: requests at the Hub have 95, requests 100, the history 200, servers 300, rules 350, lasting answers 360, agents 400. */
  readonly rank: number;
  /**
   * The id of the section whose tab it shares: `pending`, `history`, `servers`, `rules`, `threads`, or another
   * extension's. Without, it has a tab of its own.
   */
  readonly tab?: string;
  /** The content. It belongs to the panel and is disposed with the section. */
  readonly widget: Widget;
}

/** An added section. Disposing it removes it from the panel. */
export interface ISectionHandle extends IDisposable {
  /** How many things in it wait for a person; shown on its tab, and the sum on the panel's own tab. */
  count: number;
  /** A problem in it, which its tab marks and names; empty if there is none. */
  problem: string;
  /** Show its tab. */
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
  /** Show the panel and one of its tabs, by the id of the section after which the tab is named. */
  showTab(id: string): void;
  /** Add a section. Throws if there is one of that id. */
  addSection(section: IPanelSection): ISectionHandle;
  /**
   * Add a widget to the toolbar, which is there with every tab.
   *
   * @param name - Unique in the toolbar.
   * @param side - At the start are buttons that act on what the panel shows, at the end those that lead elsewhere.
   */
  addToolbarItem(name: string, item: Widget, side: 'start' | 'end'): void;
}

/** The token of `IApprovals`. */
export const IApprovals = new Token<IApprovals>(
  'jupyter-agentbox:IApprovals',
  'The approval requests that this page knows, read-only.'
);

/** The token of `IAgentBoxPanel`. */
export const IAgentBoxPanel = new Token<IAgentBoxPanel>(
  'jupyter-agentbox:IAgentBoxPanel',
  'The side panel, to which sections can be added.'
);
