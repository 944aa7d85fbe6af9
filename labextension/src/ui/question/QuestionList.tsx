/**
 * The questions that wait: all, or those of one call.
 */
import React from 'react';

import type { IQuestionsModel } from '../../internalTokens';
import { useCardContext } from '../context';
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
  const root = React.useRef<HTMLDivElement>(null);
  useSignal(questions.changed);
  const shown = questions.questions.filter(
    one => requestId === undefined || one.request_id === requestId
  );
  const answered = useFocusAfterAnswer(root);
  return (
    <div ref={root} className="jp-AgentBox-questionList">
      {shown.map(one => (
        <QuestionCard
          key={one.id}
          {...rest}
          question={one}
          onAnswer={async (action, content) => {
            answered.add(one.id);
            try {
              await questions.answer(one.id, action, content);
            } catch (error) {
              answered.delete(one.id);
              throw error;
            }
          }}
        />
      ))}
    </div>
  );
}

/**
 * When a person's answer takes away the question with the focus, the focus goes on from there: under a cell, to where the
 * person was before; in the panel, to the next question. Returns the ids of what was answered, for the caller to add to.
 */
function useFocusAfterAnswer(root: React.RefObject<HTMLElement>): Set<string> {
  const { leave } = useCardContext();
  const [answered] = React.useState(() => new Set<string>());
  const before = cardWithFocus(root.current);
  React.useLayoutEffect(() => {
    const node = root.current;
    // Between drawing and now the person may have gone elsewhere.
    const isLost = document.activeElement === document.body;
    if (!node || !isLost || !before || node.contains(before.card)) {
      return;
    }
    if (!answered.delete(before.id)) {
      return; // it ended by itself: what the person types must not reach the notebook
    }
    if (leave) {
      leave(node);
    } else {
      const cards = node.querySelectorAll<HTMLElement>('.jp-AgentBox-card');
      cards[Math.min(before.index, cards.length - 1)]?.focus({
        preventScroll: true
      });
    }
  });
  return answered;
}

interface IFocusedCard {
  card: HTMLElement;
  id: string;
  index: number;
}

function cardWithFocus(list: HTMLElement | null): IFocusedCard | null {
  const cards = [
    ...(list?.querySelectorAll<HTMLElement>('[data-question-id]') ?? [])
  ];
  const index = cards.findIndex(one => one.contains(document.activeElement));
  const card = cards[index];
  return card ? { card, id: card.dataset['questionId'] ?? '', index } : null;
}
