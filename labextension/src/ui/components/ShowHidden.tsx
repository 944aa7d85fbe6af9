/**
 * Shows values that are hidden because their names sound like secrets.
 */
import React from 'react';

import { useTrans } from '../context';
import { useKeptFocus } from '../hooks/useKeptFocus';
import { localeOf } from '../text/language';
import { useUnseenReport } from './Unseen';
import { LinkButton } from './VisibleText';

/** Something of which a part may be hidden until somebody asks for it. */
export interface IHidden {
  /** Around what is shown, with a place for the focus. */
  root: React.RefObject<HTMLDivElement>;
  isShown: boolean;
  /** The button that shows so many characters; `null` if none are hidden. */
  button: (name: string, length: number) => JSX.Element | null;
}

export function useHidden(): IHidden {
  const [isShown, setShown] = React.useState(false);
  const root = React.useRef<HTMLDivElement>(null);
  useKeptFocus(root);
  const show = (): void => {
    setShown(true);
  };
  return {
    root,
    isShown,
    button: (name, length) =>
      length > 0 && !isShown ? (
        <ShowHidden name={name} length={length} onShow={show} />
      ) : null
  };
}

interface IShowHiddenProps {
  /** What it is a part of. */
  name: string;
  /** The number of hidden characters. */
  length: number;
  onShow: () => void;
}

/** Until it is pressed, a person has not seen what is hidden. */
function ShowHidden(props: IShowHiddenProps): JSX.Element {
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
