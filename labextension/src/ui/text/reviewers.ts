/**
 * Who answered a request, as people read it.
 */
import type { User } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IReviewer } from '../../api/protocol';
import { label } from './visibleText';

/** Says who a reviewer is. */
export type NameOf = (reviewer: IReviewer) => string;

/** What Jupyter makes up for a browser that nobody signed in with. */
const ANONYMOUS = /^[0-9a-f]{32}$/;

/** Whether Jupyter made a user's name up. */
export function isMadeUp(username: string): boolean {
  return ANONYMOUS.test(username);
}

/** The longest name that is shown whole. */
const LENGTH = 60;

/**
 * Say "you" for the user of this page if a browser sent the answer, and for no program; spare the reader what Jupyter
 * made up.
 */
export function reviewerNames(
  user: Pick<User.IManager, 'identity'>,
  trans: TranslationBundle
): NameOf {
  return reviewer => {
    const isMine = reviewer.reviewer === user.identity?.username;
    const name = nameAlone(reviewer, trans);
    if (reviewer.reviewer_kind === 'service') {
      return trans.__('the service “%1”', name);
    }
    switch (reviewer.via) {
      case 'browser':
        return isMine ? trans.__('you') : name;
      case 'api_token':
        return tokenText(reviewer, isMine, trans);
      case 'server_token':
        return trans.__('a program with this server’s own token');
      case 'program':
        return trans.__('a program run by %1', name);
      case 'mcp_client':
        return trans.__('an MCP client run by %1', name);
      case 'terminal':
        return trans.__('%1 in the terminal', name);
      case 'nobody':
        return trans.__('a program that had nobody to ask');
      case 'model':
        return trans.__('the model “%1”', name.replace(/^model:/, ''));
      default:
        return name;
    }
  };
}

function tokenText(
  reviewer: IReviewer,
  isMine: boolean,
  trans: TranslationBundle
): string {
  if (isMine) {
    return trans.__('a program with your token');
  }
  return ANONYMOUS.test(reviewer.reviewer)
    ? trans.__('a program with this server’s token')
    : trans.__('a program with a token of %1', nameAlone(reviewer, trans));
}

function nameAlone(reviewer: IReviewer, trans: TranslationBundle): string {
  const username = label(reviewer.reviewer, LENGTH);
  if (ANONYMOUS.test(reviewer.reviewer)) {
    return reviewer.via === 'browser'
      ? trans.__('another browser (%1)', username.slice(0, 6))
      : trans.__('somebody (%1)', username.slice(0, 6));
  }
  if (reviewer.via === 'unknown' && username === 'unknown') {
    return label(reviewer.reviewer_name ?? username, LENGTH); // the words for it say all
  }
  return reviewer.reviewer_name
    ? trans.__('%1 (%2)', label(reviewer.reviewer_name, LENGTH), username)
    : username;
}
