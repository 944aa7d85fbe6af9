import type { User } from '@jupyterlab/services';

import type { IReviewer } from '../../../src/api/protocol';
import {
  reviewerNames,
  searchedReviewer
} from '../../../src/ui/text/reviewers';
import { trans } from '../../examples';

const ANONYMOUS = '0123456789abcdef0123456789abcdef';

function named(reviewer: Partial<IReviewer>, me = 'ada'): string {
  const identity = { username: me } as User.IIdentity;
  return reviewerNames(
    { identity },
    trans
  )({
    reviewer: 'ada',
    reviewer_kind: 'user',
    reviewer_name: null,
    via: 'browser',
    ...reviewer
  });
}

test('only what a browser of this user sent is of you', () => {
  expect(named({})).toBe('you');
  expect(named({ via: 'api_token' })).toBe('a program with your token');
  expect(named({ via: 'api_token', token_note: 'nightly' })).toBe(
    'a program with your token “nightly”'
  );
  expect(
    named({ reviewer: 'bob', via: 'api_token', token_note: 'a\nb\u202e' })
  ).toBe('a program with a token of bob (“a b\\u202e”)');
  expect(named({ via: 'browser', token_note: 'nightly' })).toBe('you');
  expect(named({ via: 'server_token' })).toBe(
    'a program with this server’s own token'
  );
  expect(named({ via: 'program' })).toBe('a program run by ada');
  expect(named({ via: 'mcp_client' })).toBe('an MCP client run by ada');
  expect(named({ via: 'terminal' })).toBe('ada in the terminal');
  expect(named({ via: 'nobody' })).toBe('a program that had nobody to ask');
  expect(named({ via: 'unknown' })).toBe('ada');
  expect(
    named({ reviewer: 'model:openai:x', reviewer_kind: 'model', via: 'model' })
  ).toBe('the model “openai:x”');
  expect(named({ reviewer_kind: 'service', via: 'api_token' })).toBe(
    'the service “ada”'
  );
});

test('a name that others chose does not hide the user name', () => {
  const reviewer = { reviewer: 'bob', reviewer_name: 'you' };
  expect(named(reviewer)).toBe('you (bob)');
  expect(named({ ...reviewer, via: 'api_token' })).toBe(
    'a program with a token of you (bob)'
  );
});

test('users that Jupyter made up are called by the name that it shows', () => {
  const reviewer = { reviewer: ANONYMOUS, reviewer_name: 'Anonymous Io' };
  expect(named(reviewer)).toBe('Anonymous Io');
  expect(named({ ...reviewer, via: 'api_token' })).toBe(
    'a program with this server’s token'
  );
  expect(named({ ...reviewer, via: 'unknown' })).toBe('Anonymous Io');
  expect(named({ ...reviewer, reviewer_name: null })).toBe('user 012345');
  expect(named({ ...reviewer, reviewer_name: 'You' })).toBe('user 012345');
  expect(named(reviewer, ANONYMOUS)).toBe('you');
});

test('of whom nobody knows is said what is known, once', () => {
  const whoever = {
    reviewer: 'unknown',
    reviewer_name: 'whoever can write the file',
    via: 'unknown'
  } as const;
  expect(named(whoever)).toBe('whoever can write the file');
});

test('who looks for "you" looks for the user of the page', () => {
  const user = { identity: { username: ANONYMOUS } as User.IIdentity };
  expect(searchedReviewer(' You ', user, trans)).toBe(ANONYMOUS);
  expect(searchedReviewer('Anonymous Io', user, trans)).toBe('Anonymous Io');
  expect(searchedReviewer('you', null, trans)).toBe('you');
});
