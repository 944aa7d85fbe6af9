/**
 * Shows under a cell whose agent is working that its model was asked, while no output says what is happening.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { CodeCell, ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { KernelMessage } from '@jupyterlab/services';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { PanelLayout } from '@lumino/widgets';
import React from 'react';

import { ITEM_MIME_TYPE, readItem } from '../../api/threads';
import type { IItemOutput } from '../../api/threads';
import { LanguageProvider } from '../../ui/context';
import { useSignal } from '../../ui/hooks/useSignal';
import { Thinking } from '../../ui/items/Thinking';
import type { ILanguage } from '../../ui/text/language';
import { isAgentCell } from './agentCells';

type Outputs = ICodeCellModel['outputs'];

/** The states of a kernel that no longer does what it was asked. */
const ENDS: readonly string[] = ['restarting', 'autorestarting', 'dead'];

/** The part of a notebook that is used here. */
export interface IThinkingPanel {
  readonly content: Pick<NotebookPanel['content'], 'widgets'>;
  readonly sessionContext: Pick<
    ISessionContext,
    'iopubMessage' | 'kernelChanged' | 'statusChanged'
  >;
  readonly disposed: NotebookPanel['disposed'];
}

/**
 * Watches a notebook while it is open: a turn lasts from its cell's first message to its last. The line is a part of
 * the page only, not an output, so that no file has it.
 */
export class ThinkingWatch implements IDisposable {
  constructor(
    private readonly _panel: IThinkingPanel,
    private readonly _language: ILanguage
  ) {
    const { sessionContext, disposed } = _panel;
    sessionContext.iopubMessage.connect(this._onMessage, this);
    sessionContext.statusChanged.connect(this._onStatus, this);
    sessionContext.kernelChanged.connect(this._end, this);
    disposed.connect(this.dispose, this);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._end();
    Signal.clearData(this);
  }

  private _onMessage(_: unknown, message: KernelMessage.IMessage): void {
    const { msg_type } = message.header;
    const parent = idOf(message.parent_header);
    const content = message.content as {
      code?: unknown;
      execution_state?: unknown;
    };
    if (msg_type === 'execute_input' && isAgentCell(String(content.code))) {
      this._begin(parent);
    } else if (
      msg_type === 'status' &&
      content.execution_state === 'idle' &&
      parent === this._asked
    ) {
      this._end();
    }
  }

  private _onStatus(_: unknown, status: string): void {
    if (ENDS.includes(status)) {
      this._end();
    }
  }

  private _begin(asked: string): void {
    this._end();
    // Another page may have run the cell: then it is not this page that shows its outputs.
    const cell = this._panel.content.widgets.find(
      (one): one is CodeCell => askedOf(one) === asked
    );
    if (cell) {
      this._asked = asked;
      this._line = new ThinkingLine(cell.model.outputs, this._language);
      (cell.layout as PanelLayout).addWidget(this._line);
    }
  }

  private _end(): void {
    this._asked = '';
    this._line?.dispose();
    this._line = null;
  }

  private _asked = '';
  private _isDisposed = false;
  private _line: ThinkingLine | null = null;
}

/** The request from which a cell's outputs come. */
function askedOf(cell: object): string {
  const { outputArea } = cell as Partial<CodeCell>;
  // JupyterLab has no future for a cell that was not run.
  const future = outputArea?.future as CodeCell['outputArea']['future'] | null;
  return future ? idOf(future.msg.header) : '';
}

function idOf(header: KernelMessage.IHeader | object): string {
  return 'msg_id' in header ? header.msg_id : '';
}

/** The line under a cell. */
class ThinkingLine extends ReactWidget {
  constructor(
    private readonly _outputs: Outputs,
    private readonly _language: ILanguage
  ) {
    super();
    this.addClass('jp-AgentBox-thinkingLine');
  }

  protected override render(): JSX.Element {
    return (
      <LanguageProvider value={this._language}>
        <WhileThinking outputs={this._outputs} />
      </LanguageProvider>
    );
  }
}

/** The seconds start again each time the model is asked. */
function WhileThinking({ outputs }: { outputs: Outputs }): JSX.Element | null {
  useSignal(outputs.changed);
  return isThinking(itemsOf(outputs)) ? <Thinking /> : null;
}

function itemsOf(outputs: Outputs): IItemOutput[] {
  return Array.from({ length: outputs.length }, (_, index) =>
    readItem(outputs.get(index).data[ITEM_MIME_TYPE])
  ).filter(item => item !== null);
}

/** Whether, according to a turn's items, only the model is being waited for. */
function isThinking(items: readonly IItemOutput[]): boolean {
  const last = items[items.length - 1]?.item;
  const isAnswered =
    last?.type === 'agent_message' && last.phase === 'final_answer';
  return !isAnswered && items.every(isOver);
}

function isOver({ item, isComplete }: IItemOutput): boolean {
  return isComplete && !('status' in item && item.status === 'in_progress');
}
