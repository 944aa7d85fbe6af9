/**
 * Opens the side panel, on request or when a call begins to wait.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';

import type { IApprovalModel, IApprovalPanel } from '../tokens';
import type { ApprovalPanel } from './panel';

/** See `IApprovalPanel`. */
export class PanelOpener implements IApprovalPanel {
  constructor(
    private readonly _shell: JupyterFrontEnd.IShell,
    private readonly _panel: ApprovalPanel,
    model: IApprovalModel
  ) {
    model.arrived.connect(() => {
      if (this.isAutomatic) {
        this.show();
      }
    });
  }

  /** Whether a new request opens the panel. */
  isAutomatic = false;

  get isVisible(): boolean {
    return this._panel.isVisible && document.visibilityState === 'visible';
  }

  show(): void {
    this._shell.activateById(this._panel.id);
  }

  open(): void {
    this.show();
    void this._panel.focusPanel();
  }

  focus(step: 1 | -1): void {
    this.show();
    void this._panel.moveFocus(step);
  }

  focusRequest(id: string): void {
    this.show();
    void this._panel.focusRequest(id);
  }
}
