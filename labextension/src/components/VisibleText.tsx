/**
 * Untrusted text, shown as text, with escapes for what cannot be seen.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { segments } from '../visibleText';

/** Characters of one text that are shown at first; a page with millions of them would not answer. */
const MAX_SHOWN = 20_000;

/** Lines of a text that need no scrolling. */
const SHORT_LINES = 12;

/** A text in a line. */
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
  trans: TranslationBundle;
}

/** A text of many lines: scrolls, can be opened to its full height, and says how long it is. */
export function TextBlock({ text, name, trans }: ITextBlockProps): JSX.Element {
  const [isWhole, setWhole] = React.useState(false);
  const [isTall, setTall] = React.useState(false);
  const lines = text.split('\n').length;
  const isCut = text.length > MAX_SHOWN && !isWhole;
  const isLong = lines > SHORT_LINES || text.length > 1200;

  return (
    <div className="jp-AgentBox-block">
      <pre
        className={isTall ? 'jp-mod-tall' : undefined}
        tabIndex={isLong ? 0 : undefined}
        role={isLong ? 'group' : undefined}
        aria-label={isLong ? name : undefined}
      >
        <VisibleText text={isCut ? text.slice(0, MAX_SHOWN) : text} />
        {isCut ? '…' : null}
      </pre>
      {isLong ? (
        <div className="jp-AgentBox-blockFoot">
          <span>
            {lines === 1
              ? trans.__('1 line, %1 characters', text.length.toLocaleString())
              : trans.__(
                  '%1 lines, %2 characters',
                  lines.toLocaleString(),
                  text.length.toLocaleString()
                )}
          </span>
          {isCut ? (
            <LinkButton
              label={trans.__(
                'Only the first %1 are shown. Show all',
                MAX_SHOWN.toLocaleString()
              )}
              onClick={() => {
                setWhole(true);
              }}
            />
          ) : null}
          <LinkButton
            label={isTall ? trans.__('Show less') : trans.__('Show in full')}
            isPressed={isTall}
            onClick={() => {
              setTall(!isTall);
              setWhole(isWhole || !isTall);
            }}
          />
        </div>
      ) : null}
    </div>
  );
}

export interface ILinkButtonProps {
  label: string;
  title?: string;
  isPressed?: boolean;
  onClick: () => void;
}

/** A button that reads like a link. */
export function LinkButton(props: ILinkButtonProps): JSX.Element {
  return (
    <button
      type="button"
      className="jp-AgentBox-link"
      title={props.title}
      aria-expanded={props.isPressed}
      onClick={props.onClick}
    >
      {props.label}
    </button>
  );
}
