/**
 * Shows the pending requests in the side panel, on demand or when one arrives.
 */
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { IApprovalModel, IApprovalPanel } from '../../internalTokens';
import type { IAgentBoxPanel, ISectionHandle } from '../../tokens';
import { withFocusToFollow } from '../../ui/guarded/keyGuard';
import { stayInView } from '../../ui/guarded/stayInView';
import type { PendingSection } from './PendingSection';

/** The dependencies of `ApprovalPanel`. */
export interface IApprovalPanelOptions {
  panel: IAgentBoxPanel;
  section: PendingSection;
  handle: ISectionHandle;
  model: IApprovalModel;
}

/** See `IApprovalPanel`. */
export class ApprovalPanel implements IApprovalPanel, IDisposable {
  constructor(private readonly _options: IApprovalPanelOptions) {
    const { model } = _options;
    model.arrived.connect(this._onArrived, this);
    model.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  /** Whether a new request opens the panel. */
  isAutomatic = false;

  get isDisposed(): boolean {
    return this._options.handle.isDisposed;
  }

  get isVisible(): boolean {
    const { panel, section } = this._options;
    return panel.isOnScreen && section.isVisible;
  }

  dispose(): void {
    Signal.clearData(this);
    this._staying?.dispose();
    this._options.handle.dispose();
  }

  show(): void {
    const { panel, handle } = this._options;
    panel.reveal();
    handle.expand();
  }

  open(): void {
    this.show();
    void this._options.section.rendered().then(() => {
      this._options.panel.takeFocus();
    });
  }

  focus(step: 1 | -1): void {
    this._reveal(() => this._options.section.findNext(step));
  }

  focusRequest(id: string): void {
    this._reveal(() => this._options.section.find(id));
  }

  focusQuestion(id: string): void {
    this._reveal(async () => {
      const { section } = this._options;
      await section.rendered();
      const tab = section.node.closest('.jp-AgentBox-panel');
      const mark = `[data-question-id="${CSS.escape(id)}"]`;
      return tab?.querySelector<HTMLElement>(mark) ?? undefined;
    });
  }

  focusTogether(id: string): void {
    this._reveal(() => this._options.section.findTable(id));
  }

  /** Move the focus to a card; to the panel if there is none. */
  private _reveal(find: () => Promise<HTMLElement | undefined>): void {
    const { panel } = this._options;
    this.show();
    void withFocusToFollow(async () => {
      const card = await find();
      if (card) {
        card.focus();
        this._staying?.dispose();
        this._staying = stayInView(card);
      } else {
        panel.takeFocus();
      }
    });
  }

  private _onArrived(): void {
    // Someone who looks at another tab is told by its count, and by a notification.
    if (this.isAutomatic && !this._options.panel.isOnScreen) {
      this.show();
    }
  }

  private _onChanged(): void {
    const { handle, model } = this._options;
    handle.count = model.pending.length;
  }

  /** Keeps the card that was gone to last in view. */
  private _staying: IDisposable | null = null;
}
