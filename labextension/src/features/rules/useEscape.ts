/**
 * A React hook for a form that Escape closes, without losing what was typed.
 */
import React from 'react';

import { useTrans } from '../../ui/context';

export interface IEscape {
  /** What to say after a first Escape in a form that was changed; empty at other times. */
  warning: string;
  /** The element in which it is said: it is scrolled to, or a person would not know of it. */
  said: React.RefObject<HTMLParagraphElement>;
  onKeyDown: (event: React.KeyboardEvent) => void;
  /** Let the next Escape be a first one again, because the person goes on. */
  forget: () => void;
}

/** Cancel a form at Escape, and one that was changed only at a second one. */
export function useEscape(isChanged: boolean, onCancel: () => void): IEscape {
  const trans = useTrans();
  const [isWarned, setWarned] = React.useState(false);
  const said = React.useRef<HTMLParagraphElement>(null);
  React.useEffect(() => {
    if (isWarned) {
      said.current?.scrollIntoView({ block: 'nearest' });
    }
  }, [isWarned]);
  return {
    warning: isWarned
      ? trans.__('Press Escape again to discard what you have changed.')
      : '',
    said,
    onKeyDown: event => {
      if (event.key !== 'Escape' || event.nativeEvent.isComposing) {
        return;
      }
      event.stopPropagation();
      if (event.repeat) {
        return;
      }
      if (isChanged && !isWarned) {
        setWarned(true);
      } else {
        onCancel();
      }
    },
    forget: () => {
      setWarned(false);
    }
  };
}
