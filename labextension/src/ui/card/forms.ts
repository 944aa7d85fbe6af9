/**
 * The forms that are open on cards, for a view that is taken down and built anew: when its tab is dragged elsewhere, or a
 * cell is scrolled out of view and back.
 */
import React from 'react';

import { CODE } from '../code/findings';
import { draftText } from '../form/draft';
import type { IDraft } from '../form/draft';

/** The open form of a card, and what was typed. */
export interface IForm {
  mode: 'choose' | 'comment' | 'edit' | 'reject';
  reason: string;
  draft: IDraft | null;
  comment?: IComment;
}

/** A person's comment on allowing a call, and whether the code is told. */
export interface IComment {
  text: string;
  isTold: boolean;
}

/** What a person typed in the open form, to copy; empty if that is nothing. */
export function typedIn(form: IForm, isCode: boolean): string {
  const { mode, reason, draft, comment } = form;
  switch (mode) {
    case 'choose':
      return '';
    case 'reject':
      return reason.trim();
    case 'comment':
      return comment?.text.trim() ?? '';
    case 'edit': {
      const text = draft ? draftText(draft) : '';
      return text && isCode ? String(draft?.values[CODE]) : text;
    }
  }
}

/** Forms by the ids of their requests. Each widget has its own: two views of a request are filled in separately. */
export class Forms {
  get(id: string): IForm | undefined {
    return this._forms.get(id);
  }

  set(id: string, form: IForm): void {
    this._forms.set(id, form);
  }

  delete(id: string): void {
    this._forms.delete(id);
  }

  private readonly _forms = new Map<string, IForm>();
}

/** The forms of a card's widget. */
export const OpenForms = React.createContext(new Forms());
