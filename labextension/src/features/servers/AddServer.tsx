/**
 * Adds an MCP server: a form, a preview of the new lines, and a button that names what they start.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IJsonObject } from '../../api/json';
import type { IAddition } from '../../api/protocol';
import type { IServersModel } from '../../internalTokens';
import { TextBlock, VisibleText } from '../../ui/components/VisibleText';
import { useTrans } from '../../ui/context';
import { DecisionButton } from '../../ui/guarded/DecisionButton';
import { Guarded, GuardedCard } from '../../ui/guarded/GuardedCard';
import { PersonButton } from '../../ui/guarded/PersonButton';
import { useFirstFocus } from '../../ui/hooks/useFirstFocus';
import { useScrollIntoView } from '../../ui/hooks/useScrollIntoView';
import { useKeptFocus } from '../../ui/hooks/useKeptFocus';
import { label, visible } from '../../ui/text/visibleText';
import { messageOf } from '../../ui/text/messages';
import { entryOf, filledForm, formOf, serversIn } from './newServer';
import type { INewServer, NamedEntry } from './newServer';

export interface IAddServerProps {
  start: INewServer;
  servers: Pick<IServersModel, 'previewServer' | 'addServer'>;
  onClose: () => void;
}

/** The preview, and the entry that it is for. */
interface IShown {
  name: string;
  configuration: IJsonObject;
  addition: IAddition;
}

export function AddServer(props: IAddServerProps): JSX.Element {
  const trans = useTrans();
  const { servers, onClose } = props;
  const [form, setForm] = React.useState(props.start);
  const [shown, setShown] = React.useState<IShown | null>(null);
  const [failure, setFailure] = React.useState('');
  const [isBusy, setBusy] = React.useState(false);
  const root = React.useRef<HTMLDivElement>(null);
  useScrollIntoView(root, true);
  useKeptFocus(root);
  const run = (action: () => Promise<void>): void => {
    setBusy(true);
    setFailure('');
    action()
      .catch((error: unknown) => {
        setFailure(describe(error, trans));
      })
      .finally(() => {
        setBusy(false);
      });
  };
  /** Accept a text that names servers, such as in their instructions. */
  const take = (
    found: readonly NamedEntry[],
    fill: (entry: NamedEntry) => INewServer
  ): INewServer | null => {
    setShown(null);
    if (found.length > 1) {
      setFailure(severalText(found, trans));
      return null;
    }
    const filled = fill(found[0]);
    setFailure('');
    setForm(filled);
    return filled;
  };
  const preview = async (): Promise<void> => {
    const found = form.kind === 'json' ? serversIn(form.json) : [];
    const filled =
      found.length === 0
        ? form
        : take(found, ([given, entry]) =>
            formOf(form.name.trim() || given, entry)
          );
    if (filled === null) {
      return;
    }
    const name = filled.name.trim();
    if (name === '') {
      setFailure(trans.__('The server needs a name.'));
      return;
    }
    const configuration = entryOf(filled);
    const addition = await servers.previewServer(name, configuration);
    setShown({ name, configuration, addition });
  };
  const add = async ({
    name,
    configuration,
    addition
  }: IShown): Promise<void> => {
    setShown(null); // if it fails, a person looks again
    await servers.addServer(name, configuration, addition.revision);
    onClose();
  };
  return (
    <GuardedCard
      ref={root}
      className="jp-AgentBox-addServer"
      isGuarded
      data-lm-suppress-shortcuts="true"
      aria-label={trans.__('Add an MCP server')}
    >
      <Fields
        form={form}
        isDisabled={isBusy}
        onChange={changed => {
          setForm(changed);
          setShown(null); // what was shown is not what would be written
        }}
        onPaste={found => {
          take(found, filledForm);
        }}
      />
      {failure ? (
        <p className="jp-AgentBox-error" role="alert">
          {failure}
        </p>
      ) : null}
      {shown ? <Preview addition={shown.addition} /> : null}
      <Guarded>
        <div className="jp-AgentBox-buttons">
          {shown ? (
            <DecisionButton
              kind="neutral"
              label={trans.__(
                'Add and start: %1',
                visible(shown.addition.starts)
              )}
              isBusy={isBusy}
              onActivate={() => run(() => add(shown))}
            />
          ) : (
            <PersonButton
              label={trans.__('Preview')}
              isDisabled={isBusy}
              onActivate={() => run(preview)}
            />
          )}
          <PersonButton label={trans.__('Cancel')} onActivate={onClose} />
        </div>
      </Guarded>
    </GuardedCard>
  );
}

/** Says what to do with several servers. */
function severalText(
  found: readonly NamedEntry[],
  trans: TranslationBundle
): string {
  const names = found.map(([name]) => label(name, 40)).join(', ');
  return trans._n(
    'This has %1 server: %2. Paste it with its name, or put it into the file: press Cancel, then “Open mcp.json”.',
    'This has %1 servers: %2. Paste them one at a time, each with its name, or put them all into the file: press Cancel, then “Open mcp.json”.',
    found.length,
    label(names, 200)
  );
}

/** Why a form is not a valid entry, or an entry cannot be added. */
function describe(error: unknown, trans: TranslationBundle): string {
  if (!(error instanceof SyntaxError)) {
    return messageOf(error);
  }
  return error.message === ''
    ? trans.__('The entry is not a JSON object.')
    : trans.__('This cannot be read: %1', messageOf(error, 200));
}

function Preview({ addition }: { addition: IAddition }): JSX.Element {
  const trans = useTrans();
  const { file, line, text, notes } = addition;
  const root = React.useRef<HTMLDivElement>(null);
  useFocusIfLost(root);
  return (
    <div ref={root} className="jp-AgentBox-preview" role="status" tabIndex={-1}>
      <p>
        {trans.__(
          'New lines of %1, from line %2; nothing else in it changes:',
          visible(file),
          line
        )}
      </p>
      <TextBlock text={text} name={trans.__('New lines')} />
      {notes.map(note => (
        <p key={note} className="jp-AgentBox-note">
          <VisibleText text={label(note, 500)} />
        </p>
      ))}
    </div>
  );
}

/** Move the focus to what appears if it was on what that replaces, so that it follows *Preview*. */
function useFocusIfLost(root: React.RefObject<HTMLElement>): void {
  React.useLayoutEffect(() => {
    if (document.activeElement === document.body) {
      root.current?.focus();
    }
  }, [root]);
}

interface IFieldsProps {
  form: INewServer;
  isDisabled: boolean;
  onChange: (form: INewServer) => void;
  /** Receives servers that are pasted with their names into any field; nothing else happens to them. */
  onPaste: (found: readonly NamedEntry[]) => void;
}

function Fields(props: IFieldsProps): JSX.Element {
  const { form, isDisabled, onChange } = props;
  const trans = useTrans();
  const first = React.useRef<HTMLInputElement>(null);
  useFirstFocus(first, true);
  const field = (
    key: Exclude<keyof INewServer, 'kind'>,
    text: string,
    rows = 1
  ): JSX.Element => {
    const common = {
      className: `jp-AgentBox-field${key === 'name' ? '' : ' jp-mod-code'}`,
      spellCheck: false,
      autoComplete: 'off',
      disabled: isDisabled,
      value: form[key],
      onChange: (event: { target: { value: string } }) => {
        onChange({ ...form, [key]: event.target.value });
      }
    };
    return (
      <label className="jp-AgentBox-addField">
        <span>{text}</span>
        {rows > 1 ? (
          <textarea rows={rows} {...common} />
        ) : (
          <input ref={key === 'name' ? first : undefined} {...common} />
        )}
      </label>
    );
  };
  const onPaste = (event: React.ClipboardEvent): void => {
    const found = serversIn(event.clipboardData.getData('text'));
    if (found.length > 0) {
      event.preventDefault();
      props.onPaste(found);
      first.current?.focus(); // the field that had it may go
    }
  };
  return (
    <div onPaste={onPaste}>
      {field('name', trans.__('Name'))}
      <label className="jp-AgentBox-addField">
        <span>{trans.__('Type')}</span>
        <select
          className="jp-AgentBox-field"
          disabled={isDisabled}
          value={form.kind}
          onChange={event => {
            const kind = event.target.value as INewServer['kind'];
            onChange({ ...form, kind });
          }}
        >
          <option value="program">{trans.__('Program on this machine')}</option>
          <option value="address">{trans.__('Server over HTTP')}</option>
          <option value="json">{trans.__('Entry as JSON')}</option>
        </select>
      </label>
      {form.kind === 'program' ? (
        <>
          {field('command', trans.__('Program'))}
          {field('args', trans.__('Arguments, one per line'), 3)}
          {field(
            'variables',
            trans.__(
              'Names of environment variables that it gets from Jupyter, one per line'
            ),
            2
          )}
        </>
      ) : null}
      {form.kind === 'address' ? (
        <>
          {field('url', trans.__('Address'))}
          {field(
            'headers',
            trans.__(
              'Headers, “Name: value” in each line; write ${NAME} for a secret'
            ),
            2
          )}
        </>
      ) : null}
      {form.kind === 'json'
        ? field('json', trans.__('The entry, as in mcp.json'), 8)
        : null}
    </div>
  );
}
