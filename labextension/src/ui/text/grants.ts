/**
 * Lasting answers, in words.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { GrantVoid, IGrant, IGrantUse } from '../../api/protocol';
import type { NameOf } from './reviewers';
import { label } from './visibleText';
import { localeOf } from './language';

const CLOCK: Intl.DateTimeFormatOptions = {
  hour: '2-digit',
  minute: '2-digit'
};

/** The time of day, with the date if that is not today's. */
function shortTime(iso: string, trans: TranslationBundle): string {
  const time = new Date(iso);
  return time.toDateString() === new Date().toDateString()
    ? time.toLocaleTimeString(localeOf(trans), CLOCK)
    : time.toLocaleString(localeOf(trans), {
        dateStyle: 'short',
        timeStyle: 'short'
      });
}

/** The grant that answered a request: “your lasting answer of 10:02”. */
export function describeUse(
  use: IGrantUse,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const who = nameOf(use);
  const when = shortTime(use.granted_at, trans);
  return who === trans.__('you')
    ? trans.__('your lasting answer of %1', when)
    : trans.__('the lasting answer of %1 by %2', when, who);
}

/** What a grant is for. */
export function describeGrant(grant: IGrant, trans: TranslationBundle): string {
  const name = label(`${grant.server}.${grant.tool}`, 80);
  const isAllowed = grant.effect === 'allow';
  const notebook = label(grant.notebook_path ?? '', 60);
  const where = notebook
    ? trans.__('in %1 until its kernel ends', notebook)
    : trans.__('until its kernel ends');
  switch (grant.scope) {
    case 'call':
      return isAllowed
        ? trans.__('Allows one exact call of %1 %2', name, where)
        : trans.__('Rejects one exact call of %1 %2', name, where);
    case 'thread':
      return isAllowed
        ? trans.__('Allows %1 for one agent thread %2', name, where)
        : trans.__('Rejects %1 for one agent thread %2', name, where);
    case 'user':
      return isAllowed
        ? trans.__('Allows %1 in all notebooks', name)
        : trans.__('Rejects %1 in all notebooks', name);
    case 'server-read-only':
      return trans._n(
        'Allows %2, a read-only tool of %3, %4',
        'Allows %1 read-only tools of %3 (%2) %4',
        grant.tools.length,
        grant.tools.map(tool => label(tool, 40)).join(', '),
        label(grant.server, 40),
        where
      );
    default:
      return isAllowed
        ? trans.__('Allows %1 %2', name, where)
        : trans.__('Rejects %1 %2', name, where);
  }
}

/** Who gave a grant, how often it answered, and when it ends. */
export function describeUses(
  grant: IGrant,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const facts = [
    trans.__(
      'Given by %1, %2',
      nameOf(grant),
      shortTime(grant.granted_at, trans)
    ),
    grant.uses === null
      ? trans._n('used once', 'used %1 times', grant.used)
      : trans._n(
          '%2 of %1 call used',
          '%2 of %1 calls used',
          grant.uses,
          grant.used
        )
  ];
  if (grant.last_used_at && grant.used > 1) {
    facts.push(trans.__('last %1', shortTime(grant.last_used_at, trans)));
  }
  if (grant.until) {
    facts.push(trans.__('ends %1', shortTime(grant.until, trans)));
  }
  return facts.join(' · ');
}

/** Why a grant no longer holds. */
export function describeVoid(
  reason: GrantVoid,
  trans: TranslationBundle
): string {
  return reason === 'server'
    ? trans.__(
        'It no longer holds: the server is now started or reached differently.'
      )
    : trans.__(
        'It no longer holds: the server now describes the tool differently.'
      );
}
