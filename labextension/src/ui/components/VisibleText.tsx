/**
 * Untrusted text, shown as text, with escapes for invisible characters.
 */
import React from 'react';

import { useTrans } from '../context';
import { useSeenPart } from '../hooks/useSeenPart';
import { segments } from '../text/visibleText';
import { useUnseenReport } from './Unseen';
import { localeOf } from '../text/language';

/** The number of characters that are shown at first; a page with millions of them would not respond. */
const MAX_SHOWN = 20_000;

/** The number of lines that are shown without scrolling. */
const SHORT_LINES = 12;

/** The number of characters that need no scrolling, however narrow the panel is. */
const SHORT_TEXT = 200;

/** A text on one line. */
export function VisibleText(props: { text: string }): JSX.Element {
  return (
    <bdi>
      {segments(props.text).map((segment, index) =>
        segment.isEscape ? (
          <span key={index} className="jp-AgentBox-escape">
            {segment.text}
          </span>
        ) : (
          segment.text
        )
      )}
    </bdi>
  );
}

export interface ITextBlockProps {
  text: string;
  name: string;
}

/** A text of many lines: it scrolls, tells its length, and can be expanded completely and to its full height. */
export function TextBlock({ text, name }: ITextBlockProps): JSX.Element {
  const trans = useTrans();
  const [isOpen, setOpen] = React.useState(false);
  const lines = text.split('\n').length;
  const isLong = lines > SHORT_LINES || text.length > 1200;
  // What scrolls must be reached by keyboard.
  const mayScroll = lines > SHORT_LINES || text.length > SHORT_TEXT;
  const hidden = Math.max(0, text.length - MAX_SHOWN);
  const box = React.useRef<HTMLPreElement>(null);
  const [seen, onScroll] = useSeenPart(box, { text, isFilled: true, isOpen });
  const [wasOpen, setWasOpen] = React.useState(false);
  const below = Math.ceil((1 - seen) * (text.length - hidden));
  useUnseenReport(name, wasOpen ? 0 : hidden + below);

  return (
    <div className="jp-AgentBox-block">
      <pre
        ref={box}
        onScroll={onScroll}
        className={isOpen ? 'jp-mod-tall' : undefined}
        tabIndex={mayScroll ? 0 : undefined}
        role={mayScroll ? 'group' : undefined}
        aria-label={mayScroll ? name : undefined}
      >
        {hidden > 0 && !isOpen ? (
          <BothEnds text={text} hidden={hidden} />
        ) : (
          <VisibleText text={text} />
        )}
      </pre>
      {isLong ? (
        <div className="jp-AgentBox-blockFoot">
          <span>
            {trans.__(
              '%1, %2',
              trans._n(
                '%2 line',
                '%2 lines',
                lines,
                lines.toLocaleString(localeOf(trans))
              ),
              trans._n(
                '%2 character',
                '%2 characters',
                text.length,
                text.length.toLocaleString(localeOf(trans))
              )
            )}
          </span>
          <LinkButton
            label={
              isOpen
                ? trans.__('Show less')
                : trans._n(
                    'Show all %2 character',
                    'Show all %2 characters',
                    text.length,
                    text.length.toLocaleString(localeOf(trans))
                  )
            }
            isPressed={isOpen}
            onClick={() => {
              setOpen(!isOpen);
              setWasOpen(true);
            }}
          />
        </div>
      ) : null}
    </div>
  );
}

/** The beginning and the end of a text, and between them how much is omitted. */
function BothEnds(props: { text: string; hidden: number }): JSX.Element {
  const trans = useTrans();
  const { text, hidden } = props;
  return (
    <>
      <VisibleText text={text.slice(0, MAX_SHOWN / 2)} />
      <span className="jp-AgentBox-leftOut">
        {trans._n(
          '%2 character not shown here',
          '%2 characters not shown here',
          hidden,
          hidden.toLocaleString(localeOf(trans))
        )}
      </span>
      <VisibleText text={text.slice(-MAX_SHOWN / 2)} />
    </>
  );
}

export interface ILinkButtonProps {
  label: string;
  /** What a screen reader calls it, if its label does not tell it from others. It begins with the label. */
  name?: string;
  title?: string;
  isPressed?: boolean;
  onClick: () => void;
}

/** A button that looks like a link. */
export function LinkButton(props: ILinkButtonProps): JSX.Element {
  return (
    <button
      type="button"
      className="jp-AgentBox-link"
      title={props.title}
      aria-label={props.name}
      aria-expanded={props.isPressed}
      onClick={props.onClick}
    >
      {props.label}
    </button>
  );
}
