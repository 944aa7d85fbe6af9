/**
 * An image that is the value of an argument, small; or why it is not drawn.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { useTrans } from '../context';
import type { IImageValue } from '../text/imageValue';
import { localeOf } from '../text/language';

export interface IPictureProps {
  image: IImageValue;
}

/** Beside the text and not in its place: what a file has after its image can be seen in the text only. */
export function Picture({ image }: IPictureProps): JSX.Element {
  const trans = useTrans();
  const [isBroken, setBroken] = React.useState(false);
  const name = describe(image, trans);
  const why = isBroken
    ? trans.__('Not drawn: the browser cannot read it.')
    : refusal(image, trans);
  return (
    <figure className="jp-AgentBox-picture">
      {image.url && !isBroken ? (
        <img
          src={image.url}
          alt={name}
          decoding="async"
          draggable={false}
          onError={() => {
            setBroken(true);
          }}
        />
      ) : null}
      <figcaption>
        {name}
        {why ? ` – ${why}` : null}
      </figcaption>
    </figure>
  );
}

function describe(image: IImageValue, trans: TranslationBundle): string {
  const names = { png: 'PNG', jpeg: 'JPEG', gif: 'GIF', webp: 'WebP' };
  return trans._n(
    '%2 image, %3 × %4 pixels, %5 byte',
    '%2 image, %3 × %4 pixels, %5 bytes',
    image.size,
    names[image.type],
    image.width.toLocaleString(localeOf(trans)),
    image.height.toLocaleString(localeOf(trans)),
    image.size.toLocaleString(localeOf(trans))
  );
}

function refusal(image: IImageValue, trans: TranslationBundle): string | null {
  switch (image.refusal) {
    case 'large':
      return trans.__('Not drawn: it has too many pixels.');
    case 'animated':
      return trans.__('Not drawn: it is animated.');
    case null:
      return null;
  }
}
