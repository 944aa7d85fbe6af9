/**
 * What is wrong in a form for arguments, where that stands, and the way there.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IJsonObject } from '../../api/json';
import type { IArgumentError } from '../card/useSending';
import { draftArguments } from './draft';
import type { IDraft } from './draft';
import { hasField, toFormSchema } from './formSchema';
import { countWrong, wrongValues } from './validation';

/** What is known to be wrong. */
export interface IWrong {
  /** The number of fields of the form. */
  marked: number;
  /** What is wrong with values that have no field, and what the server says that is about no field. */
  unplaced: readonly string[];
}

export function useWrong(
  source: IJsonObject,
  draft: IDraft,
  error: IArgumentError | null,
  trans: TranslationBundle
): IWrong {
  const form = React.useMemo(
    () => toFormSchema(source, draft.start),
    [source, draft.start]
  );
  const found = React.useMemo(
    () => (form ? countWrong(draft.values, form.schema) : 0),
    [form, draft.values]
  );
  const shown = draft.mode === 'form' ? form : null;
  const unfit = React.useMemo(() => {
    const { values } = draftArguments(draft, trans);
    const isChecked = (name: string): boolean =>
      !shown || !hasField(shown.schema, name);
    return values ? wrongValues(values, source, trans, isChecked) : [];
  }, [draft, shown, source, trans]);
  const isPlaced =
    shown !== null && error !== null && hasField(shown.schema, error.parameter);
  const said = error && !isPlaced ? [error.message] : [];
  // The form sends only what it takes for right, so that the server's objection stands alone.
  return {
    marked: shown ? Math.max(found, isPlaced ? 1 : 0) : 0,
    unplaced: [...unfit, ...said]
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
