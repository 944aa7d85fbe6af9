/**
 * Edits the code of a call in an editor, with the difference from the requested code.
 */
import React from 'react';

import { CodeField } from '../code/CodeField';
import { Difference } from '../code/Difference';
import { withPlainBreaks } from '../code/editor';
import { CODE } from '../code/findings';
import { useTrans } from '../context';
import { useScrollIntoView } from '../hooks/useScrollIntoView';
import { EditFooter } from './EditFooter';
import type { IEditFormProps } from './EditForm';

export function CodeForm(props: IEditFormProps): JSX.Element {
  const trans = useTrans();
  const { approval, draft, isFocused } = props;
  const root = React.useRef<HTMLDivElement>(null);
  useScrollIntoView(root, isFocused);
  const after = React.useRef<HTMLDivElement>(null);
  const original = String(approval.call.arguments[CODE]);
  const code = String(draft.values[CODE]);
  const correct = (): void => {
    root.current?.querySelector<HTMLElement>('.cm-content')?.focus();
  };
  return (
    <div
      ref={root}
      className="jp-AgentBox-form"
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          props.onCancel();
        }
      }}
    >
      <CodeField
        code={code}
        name={trans.__('Python code. Press Escape to leave the editor.')}
        isFocused={isFocused}
        lookAlikes={approval.call.look_alikes}
        onChange={changed => {
          props.onChange({ ...draft, values: { [CODE]: changed } });
        }}
        onLeave={() => {
          after.current?.focus();
        }}
      />
      <div ref={after} tabIndex={-1}>
        <Difference
          before={withPlainBreaks(original)}
          after={withPlainBreaks(code)}
        />
      </div>
      <EditFooter
        {...props}
        errors={[props.error?.message]}
        values={draft.values}
        correct={props.error ? correct : undefined}
      />
    </div>
  );
}
