/**
 * Letters that press the buttons of the focused card, and that go from card to card.
 */
import React from 'react';

import { useTrans } from '../context';
import { KeyGuard, letterOf, takesText } from './keyGuard';

/** The action of a letter, which checks itself whether it may act. */
type Press = () => void;

/**
 * Why a press did not count. `moved`: the card had moved or was covered. `early`: the focus had just arrived. `focus`: the
 * person had not gone to the card themselves. `unseen`: the button was out of view.
 */
export type Refusal = 'moved' | 'early' | 'focus' | 'unseen';

/** The letters of a card. */
export interface ICardKeys {
  /** The letters that are active now, if the card shows its letters; otherwise `null`. */
  help: readonly string[] | null;
  /** Bind a letter to an action until the result is called. */
  bind: (letter: string, press: Press, isStep?: boolean) => () => void;
}

/** The action of a letter. */
interface IBound {
  press: Press;
  /** Whether it only navigates, like J and K: that decides nothing, and needs no delay. */
  isStep: boolean;
}

/** Outside a card there are no letters. */
export const CardKeys = React.createContext<ICardKeys>({
  help: null,
  bind: () => () => undefined
});

/** Bind a letter for as long as the component is mounted. */
export function useLetter(letter: string | undefined, press: Press): void {
  const { bind } = React.useContext(CardKeys);
  const latest = React.useRef(press);
  React.useEffect(() => {
    latest.current = press;
  });
  React.useEffect(
    () =>
      letter
        ? bind(letter, () => {
            latest.current();
          })
        : undefined,
    [bind, letter]
  );
}

/** Bind a letter that only navigates, unless there is nowhere to go. */
export function useStepLetter(letter: string, go: (() => void) | null): void {
  const { bind } = React.useContext(CardKeys);
  React.useEffect(
    () => (go ? bind(letter, go, true) : undefined),
    [bind, letter, go]
  );
}

/** The letters of a card, whether they would count now, and the handler of its keys. */
export function useCardKeys(
  root: React.RefObject<HTMLElement>,
  isGuarded: boolean,
  refuse: (why: Refusal) => void
): {
  keys: ICardKeys;
  isReady: boolean;
  onKeyDown: (event: React.KeyboardEvent) => void;
} {
  const [isReady, setReady] = React.useState(false);
  const [help, setHelp] = React.useState<readonly string[] | null>(null);
  const [guard] = React.useState(() => new KeyGuard());
  const [bound] = React.useState(() => new Map<string, IBound>());
  // Before anything can move the focus there: on a busy page it may come before other effects run.
  React.useLayoutEffect(() => {
    const watching =
      isGuarded && root.current ? guard.watch(root.current, setReady) : null;
    return () => {
      watching?.dispose();
      setReady(false);
    };
  }, [guard, root, isGuarded]);

  const onKeyDown = (event: React.KeyboardEvent): void => {
    const native = event.nativeEvent;
    const letter = letterOf(native);
    if (!isGuarded || event.defaultPrevented || takesText(event.target)) {
      return;
    }
    const found = bound.get(letter);
    if (!found && !STEPS[letter] && letter !== '?') {
      guard.disturb(native);
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    if (event.repeat || !native.isTrusted) {
      return;
    }
    const { press, isStep } = found ?? { press: null, isStep: false };
    if (press && (isStep ? guard.isMeant : guard.isReady)) {
      guard.accept();
      press();
      return;
    }
    if (letter === '?') {
      setHelp(help ? null : [...bound.keys()]);
      guard.pass();
    } else if (!press && guard.isMeant) {
      guard.accept();
      step(root.current, STEPS[letter] ?? 1);
      guard.pass();
    } else {
      refuse(guard.isMeant ? 'early' : 'focus');
      guard.delay();
    }
  };
  const bind = React.useCallback(
    (letter: string, press: Press, isStep = false) => {
      const update = (): void => {
        setHelp(shown => shown && [...bound.keys()]);
      };
      bound.set(letter, { press, isStep });
      update();
      return () => {
        bound.delete(letter);
        update();
      };
    },
    [bound]
  );
  const keys = React.useMemo(
    () => ({ help: isGuarded ? help : null, bind }),
    [help, isGuarded, bind]
  );
  return { keys, isReady, onKeyDown };
}

const STEPS: Partial<Record<string, 1 | -1>> = { J: 1, K: -1 };

/** The containers in which one goes from card to card. */
const PLACES = '.jp-AgentBox-panel, .jp-Notebook, .jp-CodeConsole';

/** What waits for a person: a card of a request, a table of requests, a form that rejects many. */
const WAITING = ".jp-AgentBox-card[data-status='pending']";

/** Move the focus to the next card that waits in the same container, or to the previous one. */
function step(card: HTMLElement | null, by: 1 | -1): void {
  const place = card?.closest(PLACES) ?? document.body;
  const cards = [...place.querySelectorAll<HTMLElement>(WAITING)];
  const at = card ? cards.indexOf(card) : -1;
  const start = at < 0 && by < 0 ? 0 : at; // from a card that is none of them, backward leads to the last one
  const next = cards[(start + by + cards.length) % cards.length];
  if (next && next !== card) {
    next.focus();
    next.scrollIntoView({ block: 'nearest' });
  }
}

export interface IKeyHelpProps {
  /** What the button with the letter A says; by default, “Allow once”. */
  allowLabel?: string;
  /** Other keys that do something on the card, with their actions. */
  others?: readonly (readonly [keys: string, does: string])[];
}

/** The active letters of the card with their actions: in a form, those of the card's buttons are inactive. */
export function KeyHelp(props: IKeyHelpProps): JSX.Element | null {
  const trans = useTrans();
  const { help } = React.useContext(CardKeys);
  const rows: [string, string][] = [
    ['A', props.allowLabel ?? trans.__('Allow once')],
    ['E', trans.__('Edit')],
    ['R', trans.__('Reject')],
    ['J', trans.__('Next request')],
    ['K', trans.__('Previous request')],
    ['T', trans.__('Decide all of them together in the panel')],
    ['?', trans.__('Show or hide this help')]
  ];
  const works = (key: string): boolean =>
    key === '?' || key in STEPS || (help?.includes(key) ?? false);
  return (
    <div role="status">
      {help ? (
        <dl className="jp-AgentBox-keys" aria-label={trans.__('Keys')}>
          {[...(props.others ?? []), ...rows.filter(([key]) => works(key))].map(
            ([key, what]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            )
          )}
        </dl>
      ) : null}
    </div>
  );
}

/** The label of a button with its letter marked, or added if the label does not begin with it. */
export function Lettered(props: {
  label: string;
  letter?: string;
}): JSX.Element {
  const { label, letter } = props;
  if (!letter) {
    return <>{label}</>;
  }
  return label.startsWith(letter) ? (
    <>
      <u>{letter}</u>
      {label.slice(letter.length)}
    </>
  ) : (
    <>
      {label} <kbd aria-hidden="true">{letter}</kbd>
    </>
  );
}
