/**
 * Code that waits for a person, and the findings of the static analysis in it.
 */
import { isObject, namesOf } from '../../api/json';
import type { IJsonObject } from '../../api/json';
import { isCodeRun } from '../../api/protocol';
import type { IApproval, IToolCall } from '../../api/protocol';

/** How serious a finding is. */
export type Severity = 'info' | 'warning' | 'error';

/** Something in the code that the person who decides should know. */
export interface IFinding {
  /** Names the kind of finding, such as `S602`. */
  code: string;
  severity: Severity;
  message: string;
  /** From 1. */
  line: number;
  /** From 1. */
  column: number;
}

/** The name of the argument that is Python. */
export const CODE = 'code';

const SEVERITIES: readonly unknown[] = ['info', 'warning', 'error'];

/** The code that a call would run; `null` for a call of another tool. */
export function codeOf(call: IToolCall): string | null {
  const code = call.arguments[CODE];
  return isCodeRun(call) && typeof code === 'string' ? code : null;
}

/** Whether the code is the only thing that a person could edit. */
export function isOnlyCode(values: IJsonObject): boolean {
  const names = namesOf(values);
  return names.length === 1 && names[0] === CODE;
}

/** The findings in the code of a request, by line. */
export function findingsOf({ tool }: IApproval): IFinding[] {
  const found = tool.annotations['findings'];
  return Array.isArray(found)
    ? found
        .filter(isObject)
        .map(toFinding)
        .sort((a, b) => a.line - b.line || a.column - b.column)
    : [];
}

function toFinding(found: IJsonObject): IFinding {
  const { code, severity, message, line, column } = found;
  return {
    code: String(code ?? ''),
    severity: SEVERITIES.includes(severity)
      ? (severity as Severity)
      : 'warning',
    message: String(message ?? ''),
    line: Math.max(1, Number(line) || 1),
    column: Math.max(1, Number(column) || 1)
  };
}
