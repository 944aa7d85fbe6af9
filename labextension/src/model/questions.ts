/**
 * The questions of MCP servers while their tools run.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IAgentBoxClient } from '../api/client';
import type { IJsonObject } from '../api/json';
import type { IQuestion, QuestionAction } from '../api/protocol';
import type { IQuestionsModel } from '../internalTokens';

/** See `IQuestionsModel`. */
export class QuestionsModel implements IQuestionsModel {
  constructor(
    private readonly _source: Pick<
      IAgentBoxClient,
      'listQuestions' | 'answerQuestion'
    >
  ) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get questions(): readonly IQuestion[] {
    return this._questions;
  }

  async refresh(): Promise<void> {
    const number = ++this._asked;
    try {
      const found = await this._source.listQuestions();
      if (number < this._answered) {
        return; // a later question was answered first
      }
      this._answered = number;
      if (JSON.stringify(found) !== JSON.stringify(this._questions)) {
        this._questions = found;
        this._changed.emit();
      }
    } catch {
      // The last answer stays; the approvals model says that the server is out of reach.
    }
  }

  async answer(
    id: string,
    action: QuestionAction,
    content?: IJsonObject
  ): Promise<void> {
    try {
      await this._source.answerQuestion(id, action, content);
    } finally {
      await this.refresh();
    }
  }

  private _answered = 0;
  private _asked = 0;
  private readonly _changed = new Signal<this, void>(this);
  private _questions: readonly IQuestion[] = [];
}
