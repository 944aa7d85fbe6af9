/**
 * What can be done with a long value besides reading it: copy it, and open it on a page of its own.
 */
import { Clipboard } from '@jupyterlab/apputils';
import React from 'react';

import { useOpenValue, useTrans } from '../context';
import { hiddenCharacters, label } from '../text/visibleText';
import { LinkButton } from './VisibleText';

/** Milliseconds for which it is said that the value was copied. */
const SAID = 2_000;

/** Milliseconds for which it is said that there is more in it than can be seen. */
const WARNED = 10_000;

/** A value of at most this many characters, on few lines, is wholly shown where it is. */
const SHORT_TEXT = 1_200;
const SHORT_LINES = 12;

export interface IValueToolsProps {
  name: string;
  text: string;
  /** The text without the secrets that are hidden where it is; by default, there are none. */
  shown?: string;
  mimeType: string;
}

export function ValueTools(props: IValueToolsProps): JSX.Element {
  const trans = useTrans();
  const openValue = useOpenValue();
  const { name, text, shown = text, mimeType } = props;
  const [copied, setCopied] = React.useState<ICopied | null>(null);
  React.useEffect(() => {
    const timer = copied
      ? window.setTimeout(
          () => {
            setCopied(null);
          },
          copied.hidden > 0 ? WARNED : SAID
        )
      : undefined;
    return () => {
      window.clearTimeout(timer);
    };
  }, [copied]);
  const [copy, open] = [trans.__('Copy'), trans.__('Open in a tab')];
  const isLong =
    text.length > SHORT_TEXT || text.split('\n').length > SHORT_LINES;
  return (
    <div className="jp-AgentBox-blockFoot">
      <LinkButton
        label={copy}
        name={`${copy}: ${label(name)}`}
        title={trans.__('Copy all of “%1”', label(name))}
        onClick={() => {
          Clipboard.copyToSystem(text);
          setCopied({ hidden: hiddenCharacters(text).length });
        }}
      />
      {openValue && isLong ? (
        <LinkButton
          label={open}
          name={`${open}: ${label(name)}`}
          title={trans.__('Show all of “%1” on a page of its own', label(name))}
          onClick={() => {
            openValue({ name, text: shown, mimeType });
          }}
        />
      ) : null}
      <span role="status">{copied ? <Copied {...copied} /> : null}</span>
    </div>
  );
}

/** What was copied. */
interface ICopied {
  /** The number of characters in it that cannot be seen. */
  hidden: number;
}

/** Where it is pasted, what cannot be seen is not shown as a code any more. */
function Copied({ hidden }: ICopied): JSX.Element {
  const trans = useTrans();
  return hidden === 0 ? (
    <>{trans.__('Copied')}</>
  ) : (
    <span className="jp-AgentBox-copyWarning">
      {trans._n(
        'Copied with %1 character that cannot be seen; here it is shown as a code.',
        'Copied with %1 characters that cannot be seen; here they are shown as codes.',
        hidden
      )}
    </span>
  );
}
