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
  }

  private _onArrived(_: unknown, arrived: readonly IApproval[]): void {
    void this._options.restored.then(() => {
      window.setTimeout(() => {
        this._add(arrived);
      }, RENDER_TIME);
    });
  }

  private _add(arrived: readonly IApproval[]): void {
    const outOfView = arrived
      .filter(({ id }) => this._isPending(id))
      .filter(approval => !this._isInView(approval));
    for (const approval of outOfView) {
      this._waiting.set(approval.id, approval);
    }
    this._show();
  }

  /** What a person has seen, or the server has lost, needs no notification any more. */
  protected look(): void {
    for (const [id, approval] of this._waiting) {
      if (!this._isPending(id) || this._isInView(approval)) {
        this._waiting.delete(id);
      }
    }
    this._show();
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
    if (this._waiting.delete(approval.id)) {
      this._show();
    }
  }

  private _show(): void {
    this.notification.show(this._waiting.size, this._message());
  }

  private _message(): string {
    const { origins, trans } = this._options;
    const count = this._waiting.size;
    const [first] = this._waiting.values();
    return count === 1
      ? trans.__(
          '%1 needs your approval (%2)',
          // JupyterLab shows 140 characters of a message.
          label(`${first.call.server}.${callLine(first, trans)}`, 57),
          label(origins.describe(first), 60)
        )
      : trans._n(
          '%1 tool call needs your approval',
          '%1 tool calls need your approval',
          count
        );
  }

  private _showAll(): void {
    const [first, ...others] = this._waiting.values();
    this._waiting.clear();
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
    if (!(await origins.reveal(only))) {
      panel.focusRequest(only.id);
    }
  }

  private readonly _waiting = new Map<string, IApproval>();
}
