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
 * Say "you" for the user of this page if a browser sent the answer, and for no program. Without a Hub, Jupyter makes up
 * a user for each login: then there is only the name that it shows for them.
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

/** Return what the server is asked for when a person looks for a reviewer: it does not know who "you" are. */
export function searchedReviewer(
  text: string,
  user: Pick<User.IManager, 'identity'> | null,
  trans: TranslationBundle
): string {
  return isYou(text, trans) ? (user?.identity?.username ?? text) : text;
}

function isYou(text: string, trans: TranslationBundle): boolean {
  return text.trim().toLowerCase() === trans.__('you').toLowerCase();
}

function tokenText(
  reviewer: IReviewer,
  isMine: boolean,
  trans: TranslationBundle
): string {
  const note = label(reviewer.token_note ?? '', LENGTH);
  if (isMine) {
    return note
      ? trans.__('a program with your token “%1”', note)
      : trans.__('a program with your token');
  }
  if (note) {
    const name = nameAlone(reviewer, trans);
    return trans.__('a program with a token of %1 (“%2”)', name, note);
  }
  return ANONYMOUS.test(reviewer.reviewer)
    ? trans.__('a program with this server’s token')
    : trans.__('a program with a token of %1', nameAlone(reviewer, trans));
}

function nameAlone(reviewer: IReviewer, trans: TranslationBundle): string {
  const username = label(reviewer.reviewer, LENGTH);
  if (ANONYMOUS.test(reviewer.reviewer)) {
    return madeUpName(reviewer, trans);
  }
  if (reviewer.via === 'unknown' && username === 'unknown') {
    return label(reviewer.reviewer_name ?? username, LENGTH); // the words for it say all
  }
  return reviewer.reviewer_name
    ? trans.__('%1 (%2)', label(reviewer.reviewer_name, LENGTH), username)
    : username;
}

/** The name that is shown for a user that Jupyter made up; people can change it, but not to "you". */
function madeUpName(reviewer: IReviewer, trans: TranslationBundle): string {
  const name = label(reviewer.reviewer_name ?? '', LENGTH);
  const user = trans.__('user %1', reviewer.reviewer.slice(0, 6));
  return name && !isYou(name, trans) ? name : user;
}
