/**
 * The rules in force: the site's, read-only, and the user's, editable as forms or as JSON.
 */
import React from 'react';

import { RequestError } from '../../api/errors';
import { stringify } from '../../api/json';
import type { IJsonObject } from '../../api/json';
import type { IEffectiveRule, IPolicy } from '../../api/rules';
import type { IRulesModel } from '../../model/rules';
import { useTrans } from '../../ui/context';
import { useFirstFocus } from '../../ui/hooks/useFirstFocus';
import { useKeptFocus } from '../../ui/hooks/useKeptFocus';
import { useSignal } from '../../ui/hooks/useSignal';
import { label } from '../../ui/text/visibleText';
import { DecisionButton } from '../../ui/guarded/DecisionButton';
import { Guarded, GuardedCard } from '../../ui/guarded/GuardedCard';
import { PersonButton } from '../../ui/guarded/PersonButton';
import { FileProblem } from '../../ui/components/FileProblem';
import { messageOf } from '../../ui/text/messages';
import { RuleEditor } from './RuleEditor';
import { refusalText, rulesOf } from './rulesJson';
import { effectText, hubPolicyText, lockedTexts, ruleText } from './ruleWords';
import { useEscape } from './useEscape';

export interface IRuleListProps {
  rules: IRulesModel;
}

/**
 * What is being edited: a new rule, one of the user's, or all of them as JSON. The rule is kept, and not its place, which
 * other rules may take while the form is open.
 */
type Edit = 'new' | 'json' | { rule: IJsonObject; place: number } | null;

const NEW: IJsonObject = { effect: 'ask', server: '', tool: '' };

export function RuleList({ rules }: IRuleListProps): JSX.Element {
  const trans = useTrans();
  useSignal(rules.changed);
  const [edit, setEdit] = React.useState<Edit>(null);
  const [failure, setFailure] = React.useState('');
  const [isRemoving, setRemoving] = React.useState(false);
  const root = React.useRef<HTMLElement>(null);
  useKeptFocus(root);
  const { policy, proposal } = rules;
  const close = (): void => {
    setEdit(null);
    setFailure('');
    if (proposal !== null) {
      rules.propose(null);
    }
  };
  if (!policy) {
    return <section aria-label={trans.__('Rules')} />;
  }
  const save = async (
    changed: IJsonObject[],
    revision = policy.revision
  ): Promise<void> => {
    try {
      await rules.save(changed, revision);
    } catch (error) {
      if (error instanceof RequestError && error.reason === 'policy_conflict') {
        await rules.refresh();
        throw new Error(
          trans.__(
            'Another program changed the rules meanwhile. Look at them as they are now, and try again.'
          )
        );
      }
      throw error;
    }
    close();
  };
  const replace = async (
    old: IJsonObject,
    rule: IJsonObject
  ): Promise<void> => {
    const text = stringify(old);
    const place = policy.rules.findIndex(each => stringify(each) === text);
    if (place === -1) {
      throw new Error(
        trans.__(
          'Another program changed or removed this rule meanwhile. Press “Cancel” and look at the rules as they are now.'
        )
      );
    }
    await save(policy.rules.map((each, at) => (at === place ? rule : each)));
  };
  const remove = async (index: number): Promise<void> => {
    setRemoving(true);
    try {
      await save(policy.rules.filter((_, place) => place !== index));
    } catch (error) {
      setFailure(messageOf(error));
    } finally {
      setRemoving(false);
    }
  };
  const isNew = edit === 'new' || proposal !== null;
  const changing = edit !== null && typeof edit === 'object' ? edit : null;
  return (
    <section
      ref={root}
      className="jp-AgentBox-rules"
      tabIndex={-1}
      aria-label={trans.__('Rules')}
    >
      {policy.problems.map((problem, index) => (
        <FileProblem key={index} problem={problem} />
      ))}
      <Locked policy={policy} />
      {failure ? <p className="jp-AgentBox-error">{failure}</p> : null}
      <RuleRows
        policy={policy}
        isRemoving={isRemoving}
        onEdit={place => {
          setEdit({ rule: policy.rules[place], place });
        }}
        onRemove={index => void remove(index)}
      />
      {isNew || changing ? (
        <RuleEditor
          key={stringify(proposal?.rule ?? null) + String(changing?.place)}
          rule={changing?.rule ?? proposal?.rule ?? NEW}
          names={changing ? [] : (proposal?.names ?? [])}
          tryRule={rule => rules.tryRule(rule)}
          onSave={rule =>
            changing
              ? replace(changing.rule, rule)
              : save([...policy.rules, rule])
          }
          onCancel={close}
        />
      ) : null}
      {edit === 'json' ? (
        <JsonEditor policy={policy} onSave={save} onCancel={close} />
      ) : null}
      {policy.writable && edit === null && !isNew ? (
        <div className="jp-AgentBox-buttons">
          <PersonButton
            label={trans.__('New rule…')}
            onActivate={() => setEdit('new')}
          />
          <PersonButton
            label={trans.__('Edit as JSON…')}
            onActivate={() => setEdit('json')}
          />
        </div>
      ) : null}
    </section>
  );
}

/** Says which features the site's administrator turned off, if any. */
function Locked({ policy }: { policy: IPolicy }): JSX.Element | null {
  const trans = useTrans();
  const texts = [hubPolicyText(policy, trans), ...lockedTexts(policy, trans)];
  const told = texts.filter(Boolean);
  return told.length === 0 ? null : (
    <p>
      {trans.__('Set by your administrator:')} {told.join(' ')}
    </p>
  );
}

interface IRuleRowsProps {
  policy: IPolicy;
  isRemoving: boolean;
  onEdit: (index: number) => void;
  onRemove: (index: number) => void;
}

function RuleRows(props: IRuleRowsProps): JSX.Element {
  const trans = useTrans();
  const { policy, onEdit, onRemove } = props;
  const { effective, problems, file, rules, revision, writable } = policy;
  if (effective.length === 0 && problems.length === 0) {
    return (
      <p className="jp-AgentBox-empty">
        {trans.__(
          'There are no rules: every call waits for you, unless an earlier answer still covers it, such as one for an hour.'
        )}
      </p>
    );
  }
  // The user's rules stand here in the order of their file.
  const own = effective.filter(rule => rule.file === file);
  const isChangeable = (rule: IEffectiveRule): boolean =>
    writable && rule.file === file && own.length === rules.length;
  return (
    <GuardedCard
      className="jp-AgentBox-bareCard"
      isGuarded={writable}
      aria-label={trans.__('Rules in force')}
    >
      <Guarded>
        <ul role="list">
          {effective.map((rule, index) => (
            <li key={index} className="jp-AgentBox-rule">
              <RuleRow rule={rule} />
              {isChangeable(rule) ? (
                <span className="jp-AgentBox-ruleButtons">
                  <PersonButton
                    isLink
                    label={trans.__('Edit')}
                    name={trans.__('Edit %1', ruleText(rule, trans))}
                    onActivate={() => onEdit(own.indexOf(rule))}
                  />
                  <DecisionButton
                    key={revision} // another rule has come into its place
                    kind="link"
                    label={trans.__('Remove')}
                    name={trans.__('Remove %1', ruleText(rule, trans))}
                    isBusy={props.isRemoving}
                    onActivate={() => onRemove(own.indexOf(rule))}
                  />
                </span>
              ) : null}
            </li>
          ))}
        </ul>
      </Guarded>
    </GuardedCard>
  );
}

function RuleRow({ rule }: { rule: IEffectiveRule }): JSX.Element {
  const trans = useTrans();
  const { effect, layer, file, line, reason } = rule;
  const place = file ? label(`${file}:${line ?? 1}`, 200) : '';
  return (
    <>
      <span className={`jp-AgentBox-ruleEffect jp-mod-${effect}`}>
        {effectText(effect, trans)}
      </span>{' '}
      <bdi>{ruleText(rule, trans)}</bdi>
      {typeof reason === 'string' && reason ? (
        <div className="jp-AgentBox-ruleReason">
          <bdi>{label(reason, 300)}</bdi>
        </div>
      ) : null}
      <div className="jp-AgentBox-serverFacts">
        {layer === 'site' ? trans.__('Set by your administrator') : null}
        {layer === 'site' && place ? ' · ' : null}
        {place}
      </div>
    </>
  );
}

interface IJsonEditorProps {
  policy: IPolicy;
  /** Replace the revision of the rules from which the text was made: rules added since must not be lost. */
  onSave: (rules: IJsonObject[], revision: string) => Promise<void>;
  onCancel: () => void;
}

function JsonEditor(props: IJsonEditorProps): JSX.Element {
  const trans = useTrans();
  const [opened] = React.useState(props.policy);
  const [text, setText] = React.useState(() => linesOf(opened.rules));
  const [said, setSaid] = React.useState('');
  const escape = useEscape(text !== linesOf(opened.rules), props.onCancel);
  const field = React.useRef<HTMLTextAreaElement>(null);
  useFirstFocus(field, true);
  const save = async (): Promise<void> => {
    let rules: IJsonObject[];
    try {
      rules = rulesOf(text, trans);
    } catch (error) {
      setSaid(messageOf(error));
      return;
    }
    try {
      await props.onSave(rules, opened.revision);
    } catch (error) {
      setSaid(refusalText(error, text, trans));
    }
  };
  return (
    <GuardedCard
      className="jp-AgentBox-ruleForm"
      isGuarded
      data-lm-suppress-shortcuts="true"
      aria-label={trans.__('All rules')}
      onKeyDownCapture={escape.onKeyDown}
    >
      <textarea
        ref={field}
        className="jp-AgentBox-field jp-mod-code"
        aria-label={trans.__('Rules as JSON')}
        rows={12}
        wrap="off"
        spellCheck={false}
        value={text}
        onChange={event => {
          setText(event.target.value);
          escape.forget();
        }}
      />
      {opened.revision === props.policy.revision ? null : (
        <p className="jp-AgentBox-warning">
          {trans.__(
            'Another program has changed the rules since you opened this text. Copy what you need, press “Cancel”, and open them again.'
          )}
        </p>
      )}
      <p ref={escape.said} className="jp-AgentBox-ruleSaid" role="status">
        {escape.warning || said}
      </p>
      <Guarded>
        <div className="jp-AgentBox-buttons">
          <DecisionButton
            kind="neutral"
            label={trans.__('Save rules')}
            onActivate={() => void save()}
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

/** The rules, a member on each line, with little indentation: the panel is narrow. */
function linesOf(rules: readonly IJsonObject[]): string {
  return stringify([...rules], 1);
}
