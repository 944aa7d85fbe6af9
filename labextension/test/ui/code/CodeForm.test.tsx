import { fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { openDraft } from '../../../src/ui/form/draft';
import { CodeForm } from '../../../src/ui/form/CodeForm';
import { approval } from '../../examples';

const base = approval();
const request = approval({
  call: {
    ...base.call,
    server: 'notebook',
    tool: 'run_code',
    arguments: { code: 'a = 1\nb = 2\n' }
  }
});

/** The form with what was typed in it. */
function Form(props: { onCancel?: () => void }): JSX.Element {
  const [draft, setDraft] = React.useState(
    openDraft(request.call.arguments, request.tool.input_schema)
  );
  return (
    <CodeForm
      isFocused={false}
      approval={request}
      draft={draft}
      error={null}
      isBusy={false}
      describedBy=""
      onChange={setDraft}
      onAllow={jest.fn()}
      onCancel={props.onCancel ?? jest.fn()}
    />
  );
}

test('an edit is shown as a difference to what was asked for', () => {
  const { container } = render(<Form />);
  expect(container.textContent).toContain('No changes');
  fireEvent.change(screen.getByRole('textbox'), {
    target: { value: 'a = 1\nb = 3\n' }
  });
  const lines = container.querySelectorAll(
    '.jp-AgentBox-diffLines > .jp-mod-removed, .jp-AgentBox-diffLines > .jp-mod-added'
  );
  expect([...lines].map(line => line.textContent)).toEqual([
    '2−Removed:b = 2',
    '2+Added:b = 3'
  ]);
});

test('Escape leaves the editor before it closes the form', () => {
  const onCancel = jest.fn();
  render(<Form onCancel={onCancel} />);
  fireEvent.keyDown(screen.getByRole('textbox'), { key: 'Escape' });
  fireEvent.keyDown(document.activeElement ?? document.body, {
    key: 'Escape'
  });
  expect(onCancel).toHaveBeenCalledTimes(1);
});
