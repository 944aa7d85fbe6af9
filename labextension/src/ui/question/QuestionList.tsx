/**
 * The questions that wait: all, or those of one call.
 */
import React from 'react';

import type { IQuestionsModel } from '../../internalTokens';
import { useSignal } from '../hooks/useSignal';
import { QuestionCard } from './QuestionCard';

export interface IQuestionListProps {
  questions: IQuestionsModel;
  /** The request of a call; without it, all questions are shown. */
  requestId?: string;
  /** Whether they are in a widget, which its kernel lays out. */
  isInWidget?: boolean;
  /** Leads to the panel, whose buttons no kernel can cover. */
  onOpenInPanel?: () => void;
}

export function QuestionList(props: IQuestionListProps): JSX.Element {
  const { questions, requestId, ...rest } = props;
  useSignal(questions.changed);
  return (
    <>
      {questions.questions
        .filter(one => requestId === undefined || one.request_id === requestId)
        .map(one => (
          <QuestionCard
            key={one.id}
            {...rest}
            question={one}
            onAnswer={(action, content) =>
              questions.answer(one.id, action, content)
            }
          />
        ))}
    </>
  );
}
