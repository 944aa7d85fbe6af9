import type { User } from '@jupyterlab/services';

import { askedBy } from '../../../src/ui/card/ToolFacts';
import { reviewerNames } from '../../../src/ui/text/reviewers';
import { trans } from '../../examples';

const NAMES = reviewerNames(
  { identity: { username: 'ada' } as User.IIdentity },
  trans
);

test('the note of a token says which program asked', () => {
  const token = {
    kind: 'user',
    display_name: null,
    via: 'api_token',
    token_note: 'nightly run'
  } as const;
  const askers = [
    { ...token, name: 'ada' },
    { ...token, name: 'ada', token_note: null },
    { ...token, name: 'ben' }
  ];
  expect(askedBy(askers, NAMES, trans)).toBe(
    'a program with your token “nightly run” or a program with your token' +
      ' or a program with a token of ben (“nightly run”)'
  );
});
