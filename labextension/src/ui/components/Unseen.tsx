/**
 * Tells how much of a request a person has not been shown, for a line beside its buttons.
 */
import React from 'react';

import { useTrans } from '../context';
import { label } from '../text/visibleText';
import { localeOf } from '../text/language';

type Report = (name: string, characters: number) => void;

/** Says how many characters of an argument were never shown. */
export const UnseenReport = React.createContext<Report>(() => undefined);

/** Collects the reports of a request's arguments. */
export function useUnseen(): [ReadonlyMap<string, number>, Report] {
  const [unseen, setUnseen] = React.useState<ReadonlyMap<string, number>>(
    new Map()
  );
  const report = React.useCallback((name: string, characters: number) => {
    setUnseen(before => {
      const after = new Map(before);
      after.set(name, characters);
      return after;
    });
  }, []);
  return [unseen, report];
}

export interface IUnseenNoteProps {
  unseen: ReadonlyMap<string, number>;
}

/** One line for each argument of which a part was never shown. */
export function UnseenNote({ unseen }: IUnseenNoteProps): JSX.Element {
  const trans = useTrans();
  return (
    <>
      {[...unseen].map(([name, characters]) =>
        characters > 0 ? (
          <p key={name} className="jp-AgentBox-warning">
            {trans._n(
              'You have not seen %2 character of “%3”.',
              'You have not seen %2 characters of “%3”.',
              characters,
              characters.toLocaleString(localeOf(trans)),
              label(name, 60)
            )}
          </p>
        ) : null
      )}
    </>
  );
}
