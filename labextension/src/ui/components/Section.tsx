/**
 * The content of a section of the side panel, in React.
 */
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React from 'react';

import { DoingsProvider } from '../context';
import { Doings } from '../doings';

/** Calls back when it is shown, so that nothing is fetched before. */
export class Section extends ReactWidget {
  constructor(
    private readonly _content: () => JSX.Element,
    private readonly _onShow: () => void,
    /** Whether there is content only while it is shown: it has nothing that a person could lose. */
    private readonly _isLight = false
  ) {
    super();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) {
      this._onShow();
    }
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    if (this._isLight) {
      this.update();
    }
    this._onShow();
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    if (this._isLight) {
      this.update();
    }
  }

  protected override render(): JSX.Element | null {
    return this._isLight && !this.isVisible ? null : (
      <DoingsProvider value={this._doings}>{this._content()}</DoingsProvider>
    );
  }

  /** JupyterLab detaches it, and so unmounts its components, when a person moves the panel to the other side. */
  private readonly _doings = new Doings();
}
