/**
 * Python to edit, in JupyterLab's editor.
 */
import React from 'react';

import type { ILookAlike } from '../../api/protocol';
import { useEditors } from '../context';
import { openEditor } from './editor';
import { lookAlikeMarks } from './marks';

export interface ICodeFieldProps {
  code: string;
  name: string;
  isFocused: boolean;
  lookAlikes?: readonly ILookAlike[];
  onChange: (code: string) => void;
  /** Escape leaves the editor, because Tab is used for editing. */
  onLeave: () => void;
}

/** Begins with the code and reports each change; what is typed stays in it. */
export function CodeField(props: ICodeFieldProps): JSX.Element {
  const editors = useEditors();
  return editors ? <Editor {...props} /> : <Textarea {...props} />;
}

function Editor(props: ICodeFieldProps): JSX.Element {
  const editors = useEditors();
  const box = React.useRef<HTMLDivElement>(null);
  const latest = React.useRef(props);
  latest.current = props;
  React.useLayoutEffect(() => {
    const node = box.current;
    if (!editors || !node) {
      return;
    }
    const host = document.createElement('div');
    const { code, name, isFocused, lookAlikes = [] } = latest.current;
    const editor = openEditor(editors, {
      host,
      code,
      name,
      marks: [lookAlikeMarks(lookAlikes)],
      onChange: changed => {
        latest.current.onChange(changed);
      }
    });
    node.append(host);
    if (isFocused) {
      editor.focus();
    }
    return () => {
      editor.dispose();
      host.remove();
    };
  }, [editors]);
  return (
    <div
      ref={box}
      className="jp-AgentBox-codeBox jp-mod-editable"
      onKeyDown={event => {
        // One that the editor used is its own: it closes a search, for one.
        if (event.key === 'Escape' && !event.defaultPrevented) {
          event.stopPropagation();
          props.onLeave();
        }
      }}
    />
  );
}

function Textarea(props: ICodeFieldProps): JSX.Element {
  const rows = Math.min(20, Math.max(5, props.code.split('\n').length + 1));
  return (
    <textarea
      className="jp-AgentBox-field jp-mod-code"
      aria-label={props.name}
      rows={rows}
      spellCheck={false}
      autoComplete="off"
      value={props.code}
      onChange={event => {
        props.onChange(event.target.value);
      }}
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          props.onLeave();
        }
      }}
    />
  );
}
