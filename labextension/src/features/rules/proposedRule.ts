/**
 * A rule that a person makes from a call.
 */
import { ExactNumber, isObject, namesOf, setMember } from '../../api/json';
import type { IJsonObject, JsonValue } from '../../api/json';
import type { IApproval } from '../../api/protocol';
import type { IProposedRule } from '../../model/rules';
import { masked } from '../../ui/text/secretValues';

/** The maximum length of a pattern. */
const LONGEST = 1000;

/** The pattern that matches only a given text. */
export function literal(text: string): string {
  return text.replace(/[*?[]/g, '[$&]');
}

/**
 * The rule for calls like this one, as it runs: of the same tool, with the same simple arguments. A condition holds no list,
 * no object and no long text, and is not made of a secret, which would be in the file of rules. `null` if this page does not
 * have the arguments.
 */
export function proposedRule(
  approval: IApproval,
  effect: 'allow' | 'deny' = 'allow'
): IProposedRule | null {
  const { call, decision, tool } = approval;
  if (decision?.omitted || (call.omitted && !decision?.arguments)) {
    return null;
  }
  const given = decision?.arguments ?? call.arguments;
  const { properties } = tool.input_schema;
  const possible = isObject(properties) ? namesOf(properties) : [];
  const conditions: IJsonObject = {};
  for (const name of namesOf(given)) {
    const condition = conditionFrom(name, given[name]);
    if (condition) {
      setMember(conditions, name, condition.value);
    }
  }
  const rule = {
    effect,
    server: literal(call.server),
    tool: literal(call.tool),
    ...(namesOf(conditions).length > 0 ? { arguments: conditions } : {})
  };
  return { rule, names: [...new Set([...namesOf(given), ...possible])] };
}

/** The condition that only this value meets; `null` if there is none, or it must not be in a file. */
function conditionFrom(
  name: string,
  value: JsonValue
): { value: JsonValue } | null {
  if (masked(name, value).hidden > 0) {
    return null;
  }
  if (typeof value === 'string') {
    const pattern = literal(value);
    // A value that is not stored any more is not what the call had.
    const isUsable = pattern.length <= LONGEST && !value.includes('[redacted]');
    return isUsable ? { value: pattern } : null;
  }
  const isPlain = value === null || typeof value !== 'object';
  return isPlain || value instanceof ExactNumber ? { value } : null;
}
