/**
 * A form for one rule, with the effect that it would have had on past calls.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { ExactNumber, isObject, parse, stringify } from '../../api/json';
import type { IJsonObject } from '../../api/json';
import type { JsonValue } from '../../api/json';
import type { Effect } from '../../api/rules';
import type { IRulesModel } from '../../model/rules';
import { useTrans } from '../../ui/context';
import { DecisionButton } from '../../ui/guarded/DecisionButton';
import { Guarded, GuardedCard } from '../../ui/guarded/GuardedCard';
import { PersonButton } from '../../ui/guarded/PersonButton';
import { useFirstFocus } from '../../ui/hooks/useFirstFocus';
import { messageOf } from '../../ui/text/messages';
import { label } from '../../ui/text/visibleText';
import { dryRunText, effectText, sandboxText } from './ruleWords';
import { useEscape } from './useEscape';

const EFFECTS: readonly Effect[] = ['allow', 'ask', 'deny'];
const LEVELS = ['', 'srt', 'landlock', 'bubblewrap-host-proc', 'bubblewrap'];

export interface IRuleEditorProps {
  rule: IJsonObject;
  /** The arguments that the call from which the rule is made, or its tool, has. */
  names: readonly string[];
  tryRule: IRulesModel['tryRule'];
  onSave: (rule: IJsonObject) => Promise<void>;
  onCancel: () => void;
}

export function RuleEditor(props: IRuleEditorProps): JSX.Element {
  const trans = useTrans();
  const [fields, setFields] = React.useState(() => fieldsOf(props.rule));
  const [said, setSaid] = React.useState('');
  const [isBusy, setBusy] = React.useState(false);
  const form = React.useRef<HTMLDivElement>(null);
  const whyId = React.useId();
  const first = React.useRef<HTMLSelectElement>(null);
  useFirstFocus(first, true);
  const start = fieldsOf(props.rule);
  const escape = useEscape(
    NAMES.some(name => fields[name] !== start[name]),
    props.onCancel
  );
  const problem = problemOf(fields, trans);
  const correct = (): void => {
    form.current
      ?.querySelector<HTMLElement>(`[name='${problem?.field ?? ''}']`)
      ?.focus();
  };
  const act = async (
    deed: (rule: IJsonObject) => Promise<string>
  ): Promise<void> => {
    setBusy(true);
    try {
      setSaid(await deed(ruleOf(fields, trans)));
    } catch (error) {
      setSaid(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  const words = wordsOf(trans);
  const field = (name: string): IFieldProps => ({
    ...words[name],
    name,
    value: fields[name],
    isWrong: problem?.field === name && fields[name].trim() !== '',
    onChange: value => {
      setFields({ ...fields, [name]: value });
      setSaid('');
      escape.forget();
    }
  });
  return (
    <GuardedCard
      ref={form}
      className="jp-AgentBox-ruleForm"
      isGuarded
      data-lm-suppress-shortcuts="true"
      aria-label={trans.__('Rule')}
      onKeyDownCapture={escape.onKeyDown}
    >
      <Choice
        {...field('effect')}
        field={first}
        values={EFFECTS}
        nameOf={effect => effectText(effect, trans)}
      />
      <Field {...field('server')} />
      <Field {...field('tool')} />
      <Field {...field('arguments')} isLong />
      <AnyValue names={props.names.filter(name => !has(fields, name))} />
      <Field {...field('notebook')} />
      <Choice
        {...field('isolation')}
        values={LEVELS}
        nameOf={level => sandboxText(level, trans)}
      />
      <Field {...field('timeout')} />
      <Field {...field('reason')} />
      <p ref={escape.said} className="jp-AgentBox-ruleSaid" role="status">
        {escape.warning || said}
      </p>
      <Guarded>
        <div className="jp-AgentBox-buttons">
          <DecisionButton
            kind="neutral"
            label={trans.__('Save rule')}
            describedBy={whyId}
            isBusy={isBusy}
            correct={problem ? correct : undefined}
            onActivate={() =>
              void act(async rule => {
                await props.onSave(rule);
                return '';
              })
            }
          />
          <PersonButton
            label={trans.__('Try on the history')}
            isDisabled={problem !== null}
            onActivate={() =>
              void act(async rule =>
                dryRunText(await props.tryRule(rule), trans)
              )
            }
          />
          <PersonButton
            label={trans.__('Cancel')}
            onActivate={props.onCancel}
          />
          <span id={whyId} className="jp-AgentBox-why" role="status">
            {problem?.text}
          </span>
        </div>
      </Guarded>
    </GuardedCard>
  );
}

/** The label of each field, what it is for, and an example of what can be written into it. */
function wordsOf(
  trans: TranslationBundle
): Record<string, { label: string; hint: string; example?: string }> {
  return {
    effect: {
      label: trans.__('Effect'),
      hint: trans.__('Of all rules that match a call, the strictest decides.')
    },
    server: {
      label: trans.__('Server'),
      hint: trans.__(
        'A name, or a pattern: “*” is any text, “?” any character.'
      ),
      example: 'shop'
    },
    tool: {
      label: trans.__('Tool'),
      hint: trans.__(
        'A name or a pattern without the server; “*” is every tool.'
      ),
      example: 'set_*'
    },
    arguments: {
      label: trans.__('Arguments (JSON)'),
      hint: trans.__(
        'Optional: conditions that all must be met. Texts are patterns, too.'
      ),
      example: '{"path": "/data/*", "amount": {"max": 50}}'
    },
    notebook: {
      label: trans.__('Notebook'),
      hint: trans.__(
        'Optional: a path or a pattern; only calls from there match.'
      ),
      example: 'reports/*.ipynb'
    },
    isolation: {
      label: trans.__('Sandbox, at least'),
      hint: trans.__(
        'A sandbox keeps the notebook’s code from other files, programs and the network. Only calls from kernels with this one, or a stronger one, match.'
      )
    },
    timeout: {
      label: trans.__('Seconds to wait'),
      hint: trans.__(
        'Optional, for a rule that asks: after this time, a request expires.'
      ),
      example: '600'
    },
    reason: {
      label: trans.__('Reason'),
      hint: trans.__(
        'Optional: shown when the rule asks, and in the error when it denies.'
      )
    }
  };
}

/** Says which arguments have no condition. */
function AnyValue(props: { names: readonly string[] }): JSX.Element | null {
  const trans = useTrans();
  if (props.names.length === 0) {
    return null;
  }
  const names = props.names.map(name => label(name) || '""').join(', ');
  return (
    <p className="jp-AgentBox-warning" role="note">
      {trans.__(
        'The rule matches any value of: %1. Lists, objects, long texts and secrets are not filled in.',
        names
      )}
    </p>
  );
}

/** Whether the conditions in the form have one for this argument. */
function has(fields: Fields, name: string): boolean {
  try {
    const conditions = parse(fields['arguments']);
    return isObject(conditions) && Object.hasOwn(conditions, name);
  } catch {
    return false; // while somebody types
  }
}

type Fields = Record<string, string>;

const NAMES = [
  'effect',
  'server',
  'tool',
  'arguments',
  'notebook',
  'isolation',
  'timeout',
  'reason'
];

function fieldsOf(rule: IJsonObject): Fields {
  return Object.fromEntries(
    NAMES.map(name => {
      const value = rule[name];
      return [name, typeof value === 'string' ? value : textOf(value)];
    })
  );
}

function textOf(value: IJsonObject[string] | undefined): string {
  return value === undefined || value === null ? '' : stringify(value);
}

/** The first field because of which the rule cannot be saved, and why; `null` if it can be. */
function problemOf(
  fields: Fields,
  trans: TranslationBundle
): { field: string; text: string } | null {
  if (!fields['server'].trim()) {
    return { field: 'server', text: trans.__('Fill in the server first.') };
  }
  if (!fields['tool'].trim()) {
    return { field: 'tool', text: trans.__('Fill in the tool first.') };
  }
  for (const field of ['arguments', 'timeout']) {
    const value = fields[field].trim();
    try {
      if (value) {
        valueOf(field, value, trans);
      }
    } catch (error) {
      return { field, text: messageOf(error) };
    }
  }
  return null;
}

/** The rule in the fields. Throws if the arguments are not a JSON object, or the seconds not a number. */
function ruleOf(fields: Fields, trans: TranslationBundle): IJsonObject {
  const rule: IJsonObject = {};
  for (const name of NAMES) {
    // A name can begin or end with a space.
    const text =
      name === 'server' || name === 'tool' ? fields[name] : fields[name].trim();
    if (text !== '' || name === 'server' || name === 'tool') {
      rule[name] = valueOf(name, text, trans);
    }
  }
  return rule;
}

function valueOf(
  name: string,
  text: string,
  trans: TranslationBundle
): JsonValue {
  switch (name) {
    case 'arguments':
      return checked(
        text,
        isObject,
        trans.__('The arguments are not a JSON object such as {"name": "x*"}.')
      );
    case 'timeout':
      return checked(
        text,
        value => typeof value === 'number' || value instanceof ExactNumber,
        trans.__('The seconds to wait are not a number.')
      );
    default:
      return text;
  }
}

/** The value of a JSON text. Throws with what is wrong if it is invalid, or not of the expected kind. */
function checked(
  text: string,
  isWanted: (value: JsonValue) => boolean,
  wrong: string
): JsonValue {
  let value;
  try {
    value = parse(text);
  } catch {
    throw new Error(wrong);
  }
  if (!isWanted(value)) {
    throw new Error(wrong);
  }
  return value;
}

interface IFieldProps {
  name: string;
  label: string;
  hint: string;
  example?: string;
  value: string;
  isLong?: boolean;
  isWrong: boolean;
  onChange: (value: string) => void;
}

/** The label of a field, the field, and what it is for. */
function Labelled(
  props: IFieldProps & { children: (hintId: string) => JSX.Element }
): JSX.Element {
  const id = React.useId();
  return (
    <div className="jp-AgentBox-ruleField">
      <label>
        <span>{props.label}</span>
        {props.children(id)}
      </label>
      <span id={id} className="jp-AgentBox-ruleHint">
        {props.hint}
      </span>
    </div>
  );
}

function Field(props: IFieldProps): JSX.Element {
  const trans = useTrans();
  const { name, value, example, isWrong, onChange } = props;
  return (
    <Labelled {...props}>
      {hintId => {
        const common = {
          name,
          value,
          placeholder: example && trans.__('e.g. %1', example),
          spellCheck: false,
          'aria-describedby': hintId,
          'aria-invalid': isWrong
        };
        return props.isLong ? (
          <textarea
            {...common}
            className="jp-AgentBox-field jp-mod-code"
            rows={3}
            onChange={event => onChange(event.target.value)}
          />
        ) : (
          <input
            {...common}
            className="jp-AgentBox-field"
            type="text"
            onChange={event => onChange(event.target.value)}
          />
        );
      }}
    </Labelled>
  );
}

interface IChoiceProps<T extends string> extends IFieldProps {
  field?: React.RefObject<HTMLSelectElement>;
  values: readonly T[];
  /** The name of a value on the page. */
  nameOf: (value: T) => string;
}

function Choice<T extends string>(props: IChoiceProps<T>): JSX.Element {
  const { name, value, values, onChange } = props;
  return (
    <Labelled {...props}>
      {hintId => (
        <select
          ref={props.field}
          className="jp-AgentBox-field"
          name={name}
          aria-describedby={hintId}
          value={value}
          onChange={event => onChange(event.target.value)}
        >
          {values.map(one => (
            <option key={one} value={one}>
              {props.nameOf(one)}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}
