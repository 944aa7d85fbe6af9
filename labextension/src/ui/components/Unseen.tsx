/**
 * Tells how much of a request a person has not been shown, for a line beside its buttons.
 */
import React from 'react';

import { useTrans } from '../context';
import { label } from '../text/visibleText';
import { localeOf } from '../text/language';

/** What was never shown: characters of an argument, or, without a name, whole arguments. */
interface IUnseen {
  name: string | null;
  count: number;
}

/** Each component that reports is a source; `null` ends what it reported. */
type Report = (source: string, unseen: IUnseen | null) => void;

/** Takes what components do not show, or do not show yet. */
export const UnseenReport = React.createContext<Report>(() => undefined);

/** Report how many characters of an argument, or without a name how many arguments, the component has not shown. */
export function useUnseenReport(name: string | null, count: number): void {
  const report = React.useContext(UnseenReport);
  const source = React.useId();
  React.useLayoutEffect(() => {
    report(source, { name, count });
  }, [report, source, name, count]);
  React.useLayoutEffect(
    () => () => {
      report(source, null);
    },
    [report, source]
  );
}

/** How much was never shown, by the argument's name; `null` stands for whole arguments. */
export type Unseen = ReadonlyMap<string | null, number>;

/** Collects the reports of a request's arguments. */
export function useUnseen(): [Unseen, Report] {
  const [reports, setReports] = React.useState<ReadonlyMap<string, IUnseen>>(
    new Map()
  );
  const report = React.useCallback<Report>((source, unseen) => {
    setReports(before => {
      const after = new Map(before);
      if (unseen) {
        after.set(source, unseen);
      } else {
        after.delete(source);
      }
      return after;
    });
  }, []);
  const unseen = React.useMemo(() => {
    const counts = new Map<string | null, number>();
    for (const { name, count } of reports.values()) {
      if (count > 0) {
        counts.set(name, (counts.get(name) ?? 0) + count);
      }
    }
    return counts;
  }, [reports]);
  return [unseen, report];
}

export interface IUnseenNoteProps {
  unseen: Unseen;
}

/** One line for each argument of which a part was never shown, and one for those that were not shown at all. */
export function UnseenNote({ unseen }: IUnseenNoteProps): JSX.Element {
  const trans = useTrans();
  return (
    <>
      {[...unseen].map(([name, count]) => (
        <p key={JSON.stringify(name)} className="jp-AgentBox-warning">
          {name === null
            ? trans._n(
                'You have not seen %2 argument.',
                'You have not seen %2 arguments.',
                count,
                count.toLocaleString(localeOf(trans))
              )
            : trans._n(
                'You have not seen %2 character of “%3”.',
                'You have not seen %2 characters of “%3”.',
                count,
                count.toLocaleString(localeOf(trans)),
                label(name, 60)
              )}
        </p>
      ))}
    </>
  );
}
