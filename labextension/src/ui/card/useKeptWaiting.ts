/**
 * Extends a request's waiting time while a person fills in one of its forms.
 */
import React from 'react';

import type { IApproval } from '../../api/protocol';

/** Milliseconds left at which the time is extended. */
const SHORT = 120_000;

/** Milliseconds without activity after which a person counts as gone. */
const ABSENT = 60_000;

/** Milliseconds between two checks of the time. */
const INTERVAL = 5000;

export interface IKeptWaitingOptions {
  approval: IApproval;
  now: () => number;
  onExtend?: () => Promise<boolean>;
}

/** Extend the time while somebody types or points in a form, up to the server's limit. */
export function useKeptWaiting(
  form: React.RefObject<HTMLElement>,
  options: IKeptWaitingOptions
): void {
  const latest = React.useRef(options);
  latest.current = options;
  React.useEffect(() => {
    const node = form.current;
    let activeAt = -Infinity;
    let isRefused = false;
    // Many cards can wait: only one that somebody is in has a timer.
    let timer = 0;
    const act = (): void => {
      activeAt = performance.now();
      if (timer === 0) {
        timer = window.setInterval(look, INTERVAL);
        look(); // little time may be left
      }
    };
    const rest = (): void => {
      window.clearInterval(timer);
      timer = 0;
    };
    const look = (): void => {
      if (performance.now() - activeAt >= ABSENT) {
        rest();
        return;
      }
      const { approval, now, onExtend } = latest.current;
      const isOpen =
        node?.querySelector('input, textarea, .cm-content') ?? null;
      const left = approval.expires_at
        ? Date.parse(approval.expires_at) - now()
        : Infinity;
      if (isOpen && !isRefused && left < SHORT) {
        void onExtend?.().then(isLonger => {
          isRefused = !isLonger;
        });
      }
    };
    node?.addEventListener('input', act);
    node?.addEventListener('keydown', act);
    node?.addEventListener('pointerdown', act);
    return () => {
      rest();
      node?.removeEventListener('input', act);
      node?.removeEventListener('keydown', act);
      node?.removeEventListener('pointerdown', act);
    };
  }, [form]);
}
