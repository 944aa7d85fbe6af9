/**
 * Shows a blocked output in a dialog of the page, for outputs in widgets, where a kernel could cover a button.
 */
import { Dialog } from '@jupyterlab/apputils';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Panel } from '@lumino/widgets';
import React from 'react';

import { LanguageProvider } from '../../ui/context';
import type { ILanguage } from '../../ui/text/language';
import { BlockedOutput } from './BlockedOutput';
import type { IBlockedOutputProps } from './BlockedOutput';

/** Shows what would run, and the button that runs it. */
export class ReviewDialog extends Dialog<void> {
  constructor(props: IBlockedOutputProps, language: ILanguage) {
    const { trans } = language;
    const onAllow = async (): Promise<void> => {
      await props.onAllow();
      this.dispose();
    };
    // A dialog whose body is itself a React widget takes the focus only when the page is idle: until then keys would go to
    // what lies below it, and then the focus would leave the button that a person is about to press.
    const body = new Panel();
    body.addWidget(
      ReactWidget.create(
        <LanguageProvider value={language}>
          <BlockedOutput {...props} isInWidget={false} onAllow={onAllow} />
        </LanguageProvider>
      )
    );
    super({
      title: trans.__('Blocked output'),
      body,
      buttons: [Dialog.cancelButton({ label: trans.__('Close') })]
    });
    this._card = body.node;
  }

  /** A dialog handles Enter for its own buttons, but the card has buttons, too. */
  override handleEvent(event: Event): void {
    const isInBody =
      event.target instanceof Node && this._card.contains(event.target);
    if (!(
      event instanceof KeyboardEvent &&
      event.key === 'Enter' &&
      isInBody
    )) {
      super.handleEvent(event);
    }
  }

  private readonly _card: HTMLElement;
}
