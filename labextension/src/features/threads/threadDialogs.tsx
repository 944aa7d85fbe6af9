/**
 * The dialogs before and after something is done to a thread.
 */
import { Dialog, InputDialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';

import type { IAgentBoxClient } from '../../api/client';
import type { IModelMessage, IThread } from '../../api/threads';
import type { IOrigins, IThreadsModel } from '../../internalTokens';
import { TextBlock } from '../../ui/components/VisibleText';
import { LanguageProvider, useTrans } from '../../ui/context';
import type { ILanguage } from '../../ui/text/language';
import { label } from '../../ui/text/visibleText';

/** The dependencies of the dialogs. */
export interface IThreadDialogsOptions {
  threads: IThreadsModel;
  client: Pick<IAgentBoxClient, 'getMessages'>;
  origins: Pick<IOrigins, 'revealPlace'>;
  language: ILanguage;
}

/** The dialogs that a list of threads opens. */
export interface IThreadDialogs {
  /** Ask for a new name. */
  rename(thread: IThread): Promise<void>;
  /** Delete a thread if the person confirms it. */
  delete(thread: IThread): Promise<void>;
  /** Show the messages to and from the model. */
  showMessages(thread: IThread): Promise<void>;
  /** Open the notebook of a thread. */
  goToNotebook(thread: IThread): Promise<void>;
}

/** See `IThreadDialogs`. */
export class ThreadDialogs implements IThreadDialogs {
  constructor(private readonly _options: IThreadDialogsOptions) {}

  async rename(thread: IThread): Promise<void> {
    const { threads, language } = this._options;
    const { trans } = language;
    const { button, value } = await InputDialog.getText({
      title: trans.__('Rename agent thread'),
      label: trans.__('Name'),
      text: thread.name,
      okLabel: trans.__('Rename')
    });
    if (button.accept && value !== null && value.trim() !== thread.name) {
      await threads.update(thread.id, { name: value.trim() });
    }
  }

  async delete(thread: IThread): Promise<void> {
    const { threads, language } = this._options;
    const { trans } = language;
    const { button } = await showDialog({
      title: trans.__('Delete agent thread?'),
      body: trans.__(
        'Delete “%1” and all that was said in it? This cannot be undone. The notebook and its outputs stay.',
        threadName(thread, trans)
      ),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.warnButton({ label: trans.__('Delete') })
      ]
    });
    if (button.accept) {
      await threads.delete(thread.id);
    }
  }

  async showMessages(thread: IThread): Promise<void> {
    const { client, language } = this._options;
    const { trans } = language;
    const messages = await client.getMessages(thread.id);
    await showDialog({
      title: trans.__('What the model was sent: %1', threadName(thread, trans)),
      body: ReactWidget.create(
        <LanguageProvider value={language}>
          <Messages messages={messages} />
        </LanguageProvider>
      ),
      buttons: [Dialog.okButton({ label: trans.__('Close') })]
    });
  }

  async goToNotebook(thread: IThread): Promise<void> {
    const { origins, language } = this._options;
    const isFound = await origins.revealPlace({
      kernel_id: thread.kernel_id,
      notebook_path: thread.notebook_path || null
    });
    if (!isFound) {
      throw new Error(language.trans.__('The notebook could not be opened.'));
    }
  }
}

/** The display name of a thread. */
export function threadName(thread: IThread, trans: TranslationBundle): string {
  return label(thread.name, 80) || trans.__('Unnamed thread');
}

function Messages(props: { messages: readonly IModelMessage[] }): JSX.Element {
  const trans = useTrans();
  const { messages } = props;
  return (
    <div className="jp-AgentBox-messages">
      {messages.length === 0 ? (
        <p>{trans.__('Nothing has been sent to the model yet.')}</p>
      ) : null}
      {messages.map((message, index) => {
        const name = describeMessage(message, trans);
        return (
          <section key={index}>
            <h4>{name}</h4>
            <TextBlock text={message.text} name={name} />
          </section>
        );
      })}
    </div>
  );
}

/** The author of a message, in words. */
function describeMessage(
  { role, tool = '' }: IModelMessage,
  trans: TranslationBundle
): string {
  switch (role) {
    case 'system':
      return trans.__('Instructions');
    case 'user':
      return trans.__('User');
    case 'assistant':
      return trans.__('Model');
    case 'reasoning':
      return trans.__('Model’s reasoning');
    case 'tool_call':
      return trans.__('Call to %1', label(tool, 60));
    case 'tool':
      return trans.__('Result of %1', label(tool, 60));
    default:
      return label(role, 40);
  }
}
