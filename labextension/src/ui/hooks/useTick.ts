/**
 * A React hook for elements that change every second.
 *
 * All of them change at the same moment. Each change costs a frame, in which the browser computes again what covers every
 * card; fifty independent timers would cause fifty frames a second. While the page is hidden, nothing changes.
 */
import { useEffect, useReducer, useState } from 'react';
import type { RefObject } from 'react';

const TICK = 1000;

const listeners = new Set<() => void>();
let timer = 0;

function listen(listener: () => void): () => void {
  if (listeners.size === 0) {
    document.addEventListener('visibilitychange', onVisibility);
  }
  listeners.add(listener);
  run();
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      document.removeEventListener('visibilitychange', onVisibility);
    }
    run();
  };
}

function tick(): void {
  for (const each of [...listeners]) {
    each();
  }
}

function onVisibility(): void {
  if (!document.hidden) {
    tick();
  }
  run();
}

/** Run the timer while somebody listens and the page is visible. */
function run(): void {
  const isWanted = listeners.size > 0 && !document.hidden;
  if (isWanted && timer === 0) {
    timer = window.setInterval(tick, TICK);
  } else if (!isWanted) {
    window.clearInterval(timer);
    timer = 0;
  }
}

/** Render again every second while active. */
export function useTick(isActive: boolean): void {
  const [, update] = useReducer((count: number) => count + 1, 0);
  useEffect(() => (isActive ? listen(update) : undefined), [isActive]);
}

/** Whether an element is in view; true if the browser cannot tell. */
export function useIsInView(element: RefObject<Element>): boolean {
  const [isInView, setInView] = useState(
    typeof IntersectionObserver === 'undefined'
  );
  useEffect(() => {
    if (!element.current || typeof IntersectionObserver === 'undefined') {
      return;
    }
    const observer = new IntersectionObserver(entries => {
      setInView(entries[entries.length - 1].isIntersecting);
    });
    observer.observe(element.current);
    return () => {
      observer.disconnect();
    };
  }, [element]);
  return isInView;
}
