/**
 * What is wrong in a form for arguments, where that stands, and the way there.
 */
import React from 'react';

import type { IJsonObject } from '../../api/json';
import type { IArgumentError } from '../card/useSending';
import type { IDraft } from './draft';
import { hasField, toFormSchema } from './formSchema';
import { countWrong } from './validation';

/** What is known to be wrong: in how many fields of the form, and what the server says that is about none of them. */
export function useWrong(
  source: IJsonObject,
  draft: IDraft,
  error: IArgumentError | null
): { marked: number; unplaced: string | null } {
  const form = React.useMemo(
    () => toFormSchema(source, draft.start),
    [source, draft.start]
  );
  const found = React.useMemo(
    () => (form ? countWrong(draft.values, form.schema) : 0),
    [form, draft.values]
  );
  if (draft.mode === 'json' || !form) {
    return { marked: 0, unplaced: error?.message ?? null };
  }
  const isPlaced = error !== null && hasField(form.schema, error.parameter);
  return {
    // The form sends only what it takes for right, so that the server's objection stands alone.
    marked: isPlaced ? Math.max(found, 1) : found,
    unplaced: isPlaced ? null : (error?.message ?? null)
  };
}

/** The first field that is wrong or, if that is known of none, the one with the JSON or the way there. */
export function whatIsWrong(
  form: HTMLElement | null,
  mode: IDraft['mode']
): HTMLElement | null {
  if (mode === 'json') {
    return form?.querySelector('textarea') ?? null;
  }
  const group = form
    ?.querySelector('.jp-errorIndicator')
    ?.closest('div.form-group');
  return (
    group?.querySelector<HTMLElement>('input, select, textarea, button') ??
    form?.querySelector('button[aria-pressed="false"]') ??
    null
  );
}

/** Go to what the server has just refused, if the person is still in the form. */
export function useRefusal(
  root: React.RefObject<HTMLElement>,
  error: IArgumentError | null,
  correct: () => void
): void {
  const first = React.useRef(error);
  const latest = React.useRef(correct);
  React.useEffect(() => {
    latest.current = correct;
  });
  React.useEffect(() => {
    if (!error || error === first.current) {
      return;
    }
    // The library marks the field in a pass of its own.
    const timer = window.setTimeout(() => {
      if (root.current?.contains(document.activeElement)) {
        latest.current();
      }
    });
    return () => {
      window.clearTimeout(timer);
    };
  }, [root, error]);
}
