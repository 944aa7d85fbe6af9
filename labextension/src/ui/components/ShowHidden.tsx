/**
 * Shows a value that is hidden because its name sounds like a secret.
 */
import React from 'react';

import { useTrans } from '../context';
import { localeOf } from '../text/language';
import { useUnseenReport } from './Unseen';
import { LinkButton } from './VisibleText';

export interface IShowHiddenProps {
  /** What it is a part of. */
  name: string;
  /** The number of hidden characters. */
  length: number;
  onShow: () => void;
}

/** Until it is pressed, a person has not seen what is hidden. */
export function ShowHidden(props: IShowHiddenProps): JSX.Element {
  const trans = useTrans();
  const { name, length, onShow } = props;
  useUnseenReport(name, length);
  return (
    <LinkButton
      label={trans._n(
        'Show %2 hidden character',
        'Show %2 hidden characters',
        length,
        length.toLocaleString(localeOf(trans))
      )}
      title={trans.__('Hidden because the name sounds like a secret.')}
      onClick={onShow}
    />
  );
}
