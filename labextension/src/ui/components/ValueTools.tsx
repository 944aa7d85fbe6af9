/**
 * What can be done with a long value besides reading it: copy it, and open it on a page of its own.
 */
import { Clipboard } from '@jupyterlab/apputils';
import React from 'react';

import { useOpenValue, useTrans } from '../context';
import { label } from '../text/visibleText';
import { LinkButton } from './VisibleText';

/** Milliseconds for which it is said that the value was copied. */
const SAID = 2_000;

/** A value of at most this many characters, on few lines, is wholly shown where it is. */
const SHORT_TEXT = 1_200;
const SHORT_LINES = 12;

export interface IValueToolsProps {
  name: string;
  text: string;
  mimeType: string;
}

export function ValueTools(props: IValueToolsProps): JSX.Element {
  const trans = useTrans();
  const openValue = useOpenValue();
  const { name, text } = props;
  const [isCopied, setCopied] = React.useState(false);
  React.useEffect(() => {
    const timer = isCopied
      ? window.setTimeout(() => {
          setCopied(false);
        }, SAID)
      : undefined;
    return () => {
      window.clearTimeout(timer);
    };
  }, [isCopied]);
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
          setCopied(true);
        }}
      />
      {openValue && isLong ? (
        <LinkButton
          label={open}
          name={`${open}: ${label(name)}`}
          title={trans.__('Show all of “%1” on a page of its own', label(name))}
          onClick={() => {
            openValue(props);
          }}
        />
      ) : null}
      <span role="status">{isCopied ? trans.__('Copied') : null}</span>
    </div>
  );
}
