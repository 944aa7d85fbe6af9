/**
 * The base of the renderers of outputs that are written in React.
 */
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import React from 'react';

/** Renders content that changes with the model, and knows when it is drawn. */
export abstract class OutputRenderer extends ReactWidget {
  override dispose(): void {
    super.dispose();
    this._onRendered();
  }

  /** The content for the present model. */
  protected abstract content(): JSX.Element;

  /** Render the content; resolves when React has drawn it into the widget's node, or the widget is detached or disposed. */
  protected renderContent(): Promise<void> {
    return new Promise(resolve => {
      this._waiting.push(resolve);
      // `update` would render later.
      MessageLoop.sendMessage(this, Widget.Msg.UpdateRequest);
    });
  }

  protected override render(): JSX.Element {
    return (
      <>
        {this.content()}
        <Rendered onRendered={this._onRendered} />
      </>
    );
  }

  protected override onBeforeDetach(message: Message): void {
    super.onBeforeDetach(message);
    this._onRendered();
  }

  private readonly _onRendered = (): void => {
    for (const resolve of this._waiting.splice(0)) {
      resolve();
    }
  };

  private readonly _waiting: (() => void)[] = [];
}

/** Calls back each time that what it is rendered with is drawn. */
function Rendered({ onRendered }: { onRendered: () => void }): null {
  React.useLayoutEffect(onRendered);
  return null;
}
