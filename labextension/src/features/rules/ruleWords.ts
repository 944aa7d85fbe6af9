/**
 * Rules in words.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import { isObject, namesOf, stringify } from '../../api/json';
import type { IJsonObject } from '../../api/json';
import type { Effect, IDryRun, IPolicy } from '../../api/rules';
import { offText } from '../../ui/text/locks';
import { label } from '../../ui/text/visibleText';

/** The effect of a rule, in words. */
export function effectText(effect: Effect, trans: TranslationBundle): string {
  const texts: Record<Effect, string> = {
    allow: trans.__('Allow'),
    ask: trans.__('Ask'),
    deny: trans.__('Deny')
  };
  return texts[effect] ?? effect;
}

/** The features that the site's administrator turned off, in words. */
export function lockedTexts(
  policy: IPolicy,
  trans: TranslationBundle
): string[] {
  return Object.entries(policy.features ?? {})
    .filter(([, { lock }]) => lock === 'force-off')
    .map(([name]) => offText(name, trans));
}

/** The state of the Hub service's policy, in words. */
export function hubPolicyText(
  policy: IPolicy,
  trans: TranslationBundle
): string {
  const { hub_policy: found } = policy;
  if (!found) {
    return '';
  }
  const hub = label(found.hub, 80);
  return found.version === null
    ? trans.__('Everything is denied until the policy of %1 arrives.', hub)
    : trans.__('The policy of %1, version %2.', hub, found.version);
}

/** The calls to which a rule applies, in words. */
export function ruleText(rule: IJsonObject, trans: TranslationBundle): string {
  const tool = label(`${String(rule['server'])}.${String(rule['tool'])}`, 120);
  const limits = [conditionText(rule, trans), ...placeTexts(rule, trans)];
  return [tool, ...limits.filter(Boolean)].join(', ');
}

function conditionText(rule: IJsonObject, trans: TranslationBundle): string {
  const { arguments: conditions } = rule;
  if (!isObject(conditions)) {
    return '';
  }
  const texts = namesOf(conditions).map(name =>
    label(`${name}: ${stringify(conditions[name])}`, 80)
  );
  return trans.__('with %1', texts.join(', '));
}

function placeTexts(rule: IJsonObject, trans: TranslationBundle): string[] {
  const { notebook, isolation, below, timeout, groups } = rule;
  const texts: string[] = [];
  if (Array.isArray(groups)) {
    const names = groups.map(group => label(String(group), 80));
    texts.push(trans.__('for members of %1', names.join(', ')));
  }
  if (typeof notebook === 'string') {
    texts.push(trans.__('in %1', label(notebook, 80)));
  }
  if (typeof isolation === 'string') {
    texts.push(atLeastText(isolation, trans));
  }
  if (typeof below === 'string') {
    texts.push(belowText(below, trans));
  }
  if (timeout !== undefined && timeout !== null) {
    texts.push(trans.__('waiting %1 s at most', String(timeout)));
  }
  return texts;
}

/** The weakest level of a kernel that is sandboxed. */
const WEAKEST = 'srt';

/** A choice in the form of a rule: the level of a sandbox that a kernel must have, with its name in the file. */
export function sandboxText(level: string, trans: TranslationBundle): string {
  switch (level) {
    case '':
      return trans.__('None needed: any kernel');
    case WEAKEST:
      return trans.__('Any sandbox (%1)', level);
    case 'landlock':
      return trans.__('A stronger sandbox (%1)', level);
    case 'bubblewrap-host-proc':
      return trans.__('A still stronger sandbox (%1)', level);
    case 'bubblewrap':
      return trans.__('The strongest sandbox (%1)', level);
    default:
      return level;
  }
}

function atLeastText(level: string, trans: TranslationBundle): string {
  switch (level) {
    case 'none':
      return trans.__('in any kernel');
    case WEAKEST:
      return trans.__('in a kernel with a sandbox');
    default:
      return trans.__(
        'in a kernel with the sandbox %1 or a stronger one',
        label(level, 40)
      );
  }
}

/** Of a kernel on another machine it is unknown what it has, so that it counts as one without a sandbox. */
function belowText(level: string, trans: TranslationBundle): string {
  return level === WEAKEST
    ? trans.__('in a kernel without a sandbox or on another machine')
    : trans.__(
        'in a kernel with a weaker sandbox than %1, without one, or on another machine',
        label(level, 40)
      );
}

/** The effect that a rule would have had on past calls, in words. Parts that are zero are left out. */
export function dryRunText(run: IDryRun, trans: TranslationBundle): string {
  if (run.looked_at === 0) {
    return trans.__('The history has no calls yet.');
  }
  if (run.matched === 0) {
    return trans._n(
      'It does not match the last call.',
      'Of the last %1 calls, it matches none.',
      run.looked_at
    );
  }
  const looked = trans._n(
    'It matches the last call.',
    'Of the last %1 calls, it matches %2.',
    run.looked_at,
    run.matched
  );
  const parts = [
    run.allow > 0 ? trans.__('allowed %1', run.allow) : '',
    run.ask > 0 ? trans.__('asked about %1', run.ask) : '',
    run.deny > 0 ? trans.__('denied %1', run.deny) : ''
  ].filter(Boolean);
  const last = parts.pop();
  if (last === undefined) {
    return looked;
  }
  const all =
    parts.length > 0 ? trans.__('%1 and %2', parts.join(', '), last) : last;
  return `${looked} ${trans.__('It would have %1.', all)}`;
}
