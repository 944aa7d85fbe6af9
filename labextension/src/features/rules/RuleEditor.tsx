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
import { dryRunText, effectText } from './ruleWords';

const EFFECTS: readonly Effect[] = ['allow', 'ask', 'deny'];
const LEVELS = ['', 'srt', 'landlock', 'bubblewrap-host-proc', 'bubblewrap'];

export interface IRuleEditorProps {
  rule: IJsonObject;
  tryRule: IRulesModel['tryRule'];
  onSave: (rule: IJsonObject) => Promise<void>;
  onCancel: () => void;
}

export function RuleEditor(props: IRuleEditorProps): JSX.Element {
  const trans = useTrans();
  const [fields, setFields] = React.useState(() => fieldsOf(props.rule));
  const [said, setSaid] = React.useState('');
  const [isBusy, setBusy] = React.useState(false);
  const first = React.useRef<HTMLSelectElement>(null);
  useFirstFocus(first, true);
  const set = (name: string, value: string): void => {
    setFields({ ...fields, [name]: value });
    setSaid('');
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
  return (
    <GuardedCard
      className="jp-AgentBox-ruleForm"
      isGuarded
      data-lm-suppress-shortcuts="true"
      aria-label={trans.__('Rule')}
    >
      <Choice
        field={first}
        name={trans.__('Effect')}
        value={fields['effect']}
        values={EFFECTS}
        nameOf={effect => effectText(effect, trans)}
        onChange={value => set('effect', value)}
      />
      <Field
        name={trans.__('Server')}
        value={fields['server']}
        onChange={value => set('server', value)}
      />
      <Field
        name={trans.__('Tool')}
        value={fields['tool']}
        onChange={value => set('tool', value)}
      />
      <Field
        name={trans.__('Arguments (JSON)')}
        value={fields['arguments']}
        isLong
        onChange={value => set('arguments', value)}
      />
      <Field
        name={trans.__('Notebook')}
        value={fields['notebook']}
        onChange={value => set('notebook', value)}
      />
      <Choice
        name={trans.__('Isolation, at least')}
        value={fields['isolation']}
        values={LEVELS}
        nameOf={level => level || trans.__('any')}
        onChange={value => set('isolation', value)}
      />
      <Field
        name={trans.__('Seconds to wait')}
        value={fields['timeout']}
        onChange={value => set('timeout', value)}
      />
      <Field
        name={trans.__('Reason')}
        value={fields['reason']}
        onChange={value => set('reason', value)}
      />
      <p className="jp-AgentBox-ruleSaid" role="status">
        {said}
      </p>
      <Guarded>
        <div className="jp-AgentBox-buttons">
          <DecisionButton
            kind="neutral"
            label={trans.__('Save rule')}
            isBusy={isBusy}
            onActivate={() =>
              void act(async rule => {
                await props.onSave(rule);
                return '';
              })
            }
          />
          <PersonButton
            label={trans.__('Try on the history')}
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
        </div>
      </Guarded>
    </GuardedCard>
  );
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

/** The rule in the fields. Throws if the arguments are not a JSON object, or the seconds not a number. */
function ruleOf(fields: Fields, trans: TranslationBundle): IJsonObject {
  const rule: IJsonObject = {};
  for (const name of NAMES) {
    const text = fields[name].trim();
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
  value: string;
  isLong?: boolean;
  onChange: (value: string) => void;
}

function Field({ name, value, isLong, onChange }: IFieldProps): JSX.Element {
  return (
    <label className="jp-AgentBox-ruleField">
      <span>{name}</span>
      {isLong ? (
        <textarea
          className="jp-AgentBox-field jp-mod-code"
          rows={3}
          spellCheck={false}
          value={value}
          onChange={event => onChange(event.target.value)}
        />
      ) : (
        <input
          className="jp-AgentBox-field"
          type="text"
          spellCheck={false}
          value={value}
          onChange={event => onChange(event.target.value)}
        />
      )}
    </label>
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
    <label className="jp-AgentBox-ruleField">
      <span>{name}</span>
      <select
        ref={props.field}
        className="jp-AgentBox-field"
        value={value}
        onChange={event => onChange(event.target.value)}
      >
        {values.map(one => (
          <option key={one} value={one}>
            {props.nameOf(one)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The rules in a JSON text. Throws if it is invalid. */
export function rulesOf(text: string): IJsonObject[] {
  const value = parse(text);
  if (!Array.isArray(value) || !value.every(isObject)) {
    throw new Error('not a list of JSON objects');
  }
  return value as IJsonObject[];
}
