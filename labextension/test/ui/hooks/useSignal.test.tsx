import { Signal } from '@lumino/signaling';
import { act, render } from '@testing-library/react';
import React from 'react';

import { useSignal } from '../../../src/ui/hooks/useSignal';

test('a render that was abandoned does not change which values are relevant', async () => {
  const changed = new Signal<object, string>({});
  const texts = { a: 'old' };
  const never = new Promise<never>(() => undefined);
  function View({ id }: { id: string }): JSX.Element {
    useSignal(changed, value => value === id);
    if (id !== 'a') {
      throw never; // it is not loaded yet
    }
    return <p>{texts.a}</p>;
  }
  let show: (id: string) => void = () => undefined;
  function Page(): JSX.Element {
    const [id, setId] = React.useState('a');
    show = setId;
    return (
      <React.Suspense fallback="loading">
        <View id={id} />
      </React.Suspense>
    );
  }
  const { container } = render(<Page />);
  await act(async () => {
    React.startTransition(() => {
      show('b');
    });
  });
  expect(container.textContent).toBe('old');

  texts.a = 'new';
  await act(async () => {
    changed.emit('a');
  });
  expect(container.textContent).toBe('new');
});
