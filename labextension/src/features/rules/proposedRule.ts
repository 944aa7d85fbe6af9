/**
 * A rule that a person makes from a call.
 */
import { namesOf } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import type { IApproval } from '../../api/protocol';
import type { IProposedRule } from '../../model/rules';
import { isSecretName } from '../../ui/text/secretNames';

/** The maximum length of a pattern. */
const LONGEST = 1000;

/** The pattern that matches only a given text. */
export function literal(text: string): string {
  return text.replace(/[*?[]/g, '[$&]');
}

/**
 * The rule for calls like this one, as it runs: of the same tool, with the same simple arguments. A condition holds no list,
 * no object and no long text, and is not made of a secret, which would be in the file of rules.
 */
export function proposedRule(
  approval: IApproval,
  effect: 'allow' | 'deny' = 'allow'
): IProposedRule {
  const { server, tool } = approval.call;
  const given = approval.decision?.arguments ?? approval.call.arguments;
  const conditions: IJsonObject = {};
  const anyValue: string[] = [];
  for (const name of namesOf(given)) {
    const condition = isSecretName(name) ? null : conditionFrom(given[name]);
    if (condition) {
      conditions[name] = condition.value;
    } else {
      anyValue.push(name);
    }
  }
  const rule = {
    effect,
    server: literal(server),
    tool: literal(tool),
    ...(Object.keys(conditions).length > 0 ? { arguments: conditions } : {})
  };
  return { rule, anyValue };
}

/** The condition that only this value meets; `null` if there is none. */
function conditionFrom(value: JsonValue): { value: JsonValue } | null {
  if (typeof value === 'string') {
    const pattern = literal(value);
    return pattern.length <= LONGEST ? { value: pattern } : null;
  }
  const isPlain = value === null || typeof value !== 'object';
  return isPlain || 'text' in value ? { value } : null;
}
