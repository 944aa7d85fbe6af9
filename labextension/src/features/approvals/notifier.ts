/**
 * Notifies of requests that are out of view: one notification, however many they are.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IApproval } from '../../api/protocol';
import type {
  IApprovalModel,
  IApprovalPanel,
  IOrigins
} from '../../internalTokens';
import { withFocusToFollow } from '../../ui/guarded/keyGuard';
import { callLine } from '../../ui/text/callLine';
import { label } from '../../ui/text/visibleText';
import { RENDER_TIME } from '../../integrations/standingNotification';
import { StandingNotifier } from '../../integrations/standingNotifier';

/** The dependencies of `Notifier`. */
export interface INotifierOptions {
  model: IApprovalModel;
  origins: IOrigins;
  panel: IApprovalPanel;
  /** Until the page has restored its notebooks, everything is out of view. */
  restored: Promise<void>;
  trans: TranslationBundle;
}

/** Keeps one notification for all pending requests out of view. */
export class Notifier extends StandingNotifier {
  constructor(private readonly _options: INotifierOptions) {
    const { trans } = _options;
    super(trans, {
      caption: trans.__('Show the pending requests'),
      callback: () => {
        this._showAll();
      }
    });
    this._options.model.arrived.connect(this._onArrived, this);
    this._options.model.settled.connect(this._onSettled, this);
    this._options.origins.closed.connect(this._onClosed, this);
  }

  private _onArrived(_: unknown, arrived: readonly IApproval[]): void {
    void this._options.restored.then(() => {
      window.setTimeout(() => {
        this._add(arrived);
      }, RENDER_TIME);
    });
  }

  private _add(arrived: readonly IApproval[]): void {
    for (const approval of arrived.filter(({ id }) => this._isPending(id))) {
      this._waiting.set(approval.id, approval);
    }
    this.look();
  }

  /** What a person has seen, or the server has lost, needs no notification any more. */
  protected look(): void {
    for (const [id, approval] of this._waiting) {
      if (!this._isPending(id)) {
        this._waiting.delete(id);
      } else if (this._isInView(approval)) {
        this._see(approval);
      }
    }
    this._show();
  }

  /** A person knows of a request, until the notebook in which they saw it is closed. */
  private _see(approval: IApproval): void {
    this._waiting.delete(approval.id);
    if (this._options.origins.isOpen(approval)) {
      this._seen.set(approval.id, approval);
    }
  }

  /** What was closed may be opened again at once, as another kind of document. */
  private _onClosed(): void {
    window.setTimeout(() => {
      for (const [id, approval] of this._seen) {
        if (!this._options.origins.isOpen(approval)) {
          this._seen.delete(id);
          this._waiting.set(id, approval);
        }
      }
      this.look();
    }, RENDER_TIME);
  }

  private _isPending(id: string): boolean {
    return this._options.model.get(id).approval?.status === 'pending';
  }

  /** The panel shows all of them, and a notification would cover its buttons. */
  private _isInView(approval: IApproval): boolean {
    const { origins, panel } = this._options;
    return panel.isVisible || origins.isInView(approval);
  }

  private _onSettled(_: unknown, approval: IApproval): void {
    this._seen.delete(approval.id);
    this._waiting.delete(approval.id);
    this._show(); // it says how many wait in all
  }

  private _show(): void {
    this.notification.show(this._waiting.size, this._message());
  }

  private _message(): string {
    const { model, origins, trans } = this._options;
    const count = this._waiting.size;
    const [first] = this._waiting.values();
    if (count === 1) {
      return trans.__(
        '%1 needs your approval (%2)',
        // JupyterLab shows 140 characters of a message.
        label(`${first.call.server}.${callLine(first, trans)}`, 57),
        label(origins.describe(first), 60)
      );
    }
    const total = model.pending.length;
    return count < total
      ? // The status bar counts all.
        trans._n(
          'Not seen yet: %2 of %1 tool call that needs your approval',
          'Not seen yet: %2 of %1 tool calls that need your approval',
          total,
          count
        )
      : trans._n(
          '%1 tool call needs your approval',
          '%1 tool calls need your approval',
          count
        );
  }

  private _showAll(): void {
    const [first, ...others] = this._waiting.values();
    [first, ...others].forEach(approval => {
      this._see(approval);
    });
    this._show();
    if (others.length > 0) {
      this._options.panel.open();
    } else {
      void withFocusToFollow(() => this._reveal(first));
    }
  }

  /** Go to a request's card under its cell; if that is not visible, to the card in the panel. */
  private async _reveal(only: IApproval): Promise<void> {
    const { origins, panel } = this._options;
    if (await origins.reveal(only)) {
      this._see(only);
    } else {
      panel.focusRequest(only.id);
    }
  }

  /** Requests that a person has seen in a notebook, or a console, that is open. */
  private readonly _seen = new Map<string, IApproval>();

  private readonly _waiting = new Map<string, IApproval>();
}
