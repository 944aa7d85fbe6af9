/**
 * The content of a section of the side panel, in React.
 */
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';

/** Calls back when it is shown, so that nothing is fetched before. */
export class Section extends ReactWidget {
  constructor(
    private readonly _content: () => JSX.Element,
    private readonly _onShow: () => void
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
    this._onShow();
  }

  protected override render(): JSX.Element {
    return this._content();
  }
}
