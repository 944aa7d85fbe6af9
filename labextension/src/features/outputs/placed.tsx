/**
 * The card of a blocked output in a node outside React.
 */
import React from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';

import { fireCardLeft } from '../../ui/card/cardLeft';
import { LanguageProvider } from '../../ui/context';
import { keepFromNotebook } from '../../ui/guarded/keepFromNotebook';
import type { ILanguage } from '../../ui/text/language';
import { BlockedOutput } from './BlockedOutput';
import type { IBlockedOutputProps } from './BlockedOutput';
import { ReviewDialog } from './reviewDialog';

/** Show a card as the first child of a node; return a function that removes it. */
export function placeCard(
  parent: HTMLElement,
  language: ILanguage,
  { onAllow, ...rest }: IBlockedOutputProps
): () => void {
  const props: IBlockedOutputProps = {
    ...rest,
    onAllow: async () => {
      await onAllow();
      fireCardLeft(parent);
    }
  };
  const host = document.createElement('div');
  host.className = 'jp-AgentBox-output jp-AgentBox-placed';
  keepFromNotebook(host);
  parent.prepend(host);
  const root = createRoot(host);
  let dialog: ReviewDialog | null = null;
  const review = (): void => {
    dialog = new ReviewDialog(props, language);
    void dialog.launch();
  };
  // At once: an output area that wants a frame of its own copies what is there now.
  flushSync(() => {
    root.render(
      <LanguageProvider value={language}>
        <BlockedOutput {...props} onReview={review} />
      </LanguageProvider>
    );
  });
  return () => {
    host.remove();
    dialog?.dispose();
    // A card goes away by a click in it, which React is not done with yet.
    window.setTimeout(() => {
      root.unmount();
    });
  };
}
