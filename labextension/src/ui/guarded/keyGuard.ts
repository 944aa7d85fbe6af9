/**
 * Distinguishes a letter that is meant for a card from one that was meant for something else.
 *
 * A program can move the focus to a card while a person types. What they go on to type must decide nothing. So a letter
 * counts only if the person themselves went to the card, the card has had the focus for a while, and no other key came
 * shortly before.
 */
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';

import { GUARD_TIME } from './guardTime';

/** Milliseconds after a person's action within which the focus may follow it. */
const FOLLOW_TIME = 1500;

/** The same if the focus is known to be on its way, because a busy page can be slow. */
const LONGEST_WAY = 30_000;

/** Keys that say nothing about where a person wants to be. */
const MODIFIERS = ['Shift', 'Control', 'Alt', 'AltGraph', 'Meta', 'CapsLock'];

/** Unmodified keys, besides those that produce a character, that people press while typing. */
const WRITING = ['Enter', 'Backspace', 'Delete', 'Process', 'Dead'];

/** The events of a person who scrolls or navigates themselves. */
export const DEEDS = ['pointerdown', 'wheel', 'keydown', 'touchstart'] as const;

/** A person's last action on the page, as far as it tells whether they are typing. */
class LastDeed {
  constructor() {
    window.addEventListener('pointerdown', this._onPointer, true);
    window.addEventListener('keydown', this._onKey, true);
    window.addEventListener('blur', this._onLeave);
  }

  /** Whether the focus moves because of the person's action, and they were not typing. */
  get isMove(): boolean {
    const isFollowed = this._followed.includes(this._at);
    const time = isFollowed ? LONGEST_WAY : FOLLOW_TIME;
    return !this._isWriting && performance.now() - this._at < time;
  }

  /** Whether that was so long ago that the person may be typing again, with keys still on their way. */
  get isLongAgo(): boolean {
    return this._isLate || performance.now() - this._at >= FOLLOW_TIME;
  }

  /**
   * Let the focus follow the person's latest action, and no earlier one, until the result is disposed. If what follows is
   * the result of that action, it may come late.
   */
  follow(isResult = false): IDisposable {
    const time = performance.now() - this._at;
    const isSlow = isResult && !this._isWriting && time < LONGEST_WAY;
    const followed = this.isMove || isSlow ? [this._at] : [];
    this._followed.push(...followed);
    return new DisposableDelegate(() => {
      for (const at of followed) {
        this._followed.splice(this._followed.indexOf(at), 1);
      }
    });
  }

  /** Note that the last key was not typing, but a letter for a card, to which the focus may have moved late. */
  accept(isLate: boolean): void {
    this._isWriting = false;
    this._isLate = isLate;
  }

  private readonly _onPointer = (event: PointerEvent): void => {
    if (event.isTrusted) {
      this._set(false);
    }
  };

  private readonly _onKey = (event: KeyboardEvent): void => {
    if (event.isTrusted && !MODIFIERS.includes(event.key)) {
      this._set(isWriting(event));
    }
  };

  /** In a frame of the page, or in another window, a person may type unobserved. */
  private readonly _onLeave = (): void => {
    this._isWriting = true;
  };

  private _set(isWriting: boolean): void {
    this._isWriting = isWriting;
    this._isLate = false;
    this._at = performance.now();
  }

  private _at = -LONGEST_WAY;
  /** The times of actions that the focus is about to follow. */
  private readonly _followed: number[] = [];
  private _isLate = false;
  private _isWriting = false;
}

// It must have seen what a person did before the first card came.
const lastDeed = new LastDeed();

/** Do something that eventually moves the focus, for a person who may just have requested it. */
export async function withFocusToFollow<T>(move: () => Promise<T>): Promise<T> {
  const following = lastDeed.follow();
  try {
    return await move();
  } finally {
    following.dispose();
  }
}

/** Let the focus follow the person's latest action, until the result is disposed. */
export function followDeed(): IDisposable {
  return lastDeed.follow();
}

/** The same for what comes after a person's own answer: the server may take long to accept it. */
export function followAnswer(): IDisposable {
  return lastDeed.follow(true);
}

/** Note that the last key was not typing, but a letter for a card that has not come yet. */
export function acceptEarlyLetter(): void {
  lastDeed.accept(false);
}

/** Watches the focus and the keys of one card. */
export class KeyGuard {
  /** Watch a card until the result is disposed; call back when letters start or stop counting. */
  watch(node: HTMLElement, onChange: (isReady: boolean) => void): IDisposable {
    const come = ({ relatedTarget }: FocusEvent): void => {
      if (!(relatedTarget instanceof Node && node.contains(relatedTarget))) {
        this._isMeant = lastDeed.isMove;
        this._isLate = lastDeed.isLongAgo;
        rest();
      }
    };
    const go = ({ relatedTarget }: FocusEvent): void => {
      if (!(relatedTarget instanceof Node && node.contains(relatedTarget))) {
        this._isMeant = false;
        rest();
      }
    };
    const press = (): void => {
      this._isMeant = true;
      this._isLate = false;
      rest();
    };
    const rest = (): void => {
      window.clearTimeout(this._timer);
      this._set(false, onChange);
      if (this._isMeant) {
        this._timer = window.setTimeout(() => {
          this._isLate = false;
          this._set(true, onChange);
        }, GUARD_TIME);
      }
    };
    this._rest = rest;
    node.addEventListener('focusin', come);
    node.addEventListener('focusout', go);
    node.addEventListener('pointerdown', press);
    return new DisposableDelegate(() => {
      window.clearTimeout(this._timer);
      node.removeEventListener('focusin', come);
      node.removeEventListener('focusout', go);
      node.removeEventListener('pointerdown', press);
    });
  }

  /** Whether the person moved to the card themselves. */
  get isMeant(): boolean {
    return this._isMeant;
  }

  /** Whether a letter that decides counts now. */
  get isReady(): boolean {
    return this._isReady;
  }

  /** Note a key on the card that is not one of its letters, so that the next letter has to wait. */
  disturb(event: KeyboardEvent): void {
    if (MODIFIERS.includes(event.key)) {
      return;
    }
    if (event.isTrusted && !isWriting(event)) {
      this._isMeant = true;
      this._isLate = false;
    } else if (this._isLate) {
      this._isMeant = false; // they were writing as the focus came
    }
    this._rest();
  }

  /** Note a letter of the card that came too early, so that the next one has to wait anew. */
  delay(): void {
    this._rest();
  }

  /** Note a letter that decides nothing, after which the next one need not wait if the focus is still here. */
  pass(): void {
    if (this._isLate) {
      this.delay(); // it may be of what they were writing
    }
  }

  /** Note a letter that counted. */
  accept(): void {
    lastDeed.accept(this._isLate);
  }

  private _set(isReady: boolean, onChange: (isReady: boolean) => void): void {
    if (isReady !== this._isReady) {
      this._isReady = isReady;
      onChange(isReady);
    }
  }

  private _isMeant = false;
  /** Whether the focus has just arrived, long after the action that it follows. */
  private _isLate = false;
  private _isReady = false;
  private _rest: () => void = () => undefined;
  private _timer = 0;
}

/** The letter of a key, even on layouts without Latin letters; empty for other keys. */
export function letterOf(event: KeyboardEvent): string {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) {
    return '';
  }
  if (event.key === '?') {
    return '?';
  }
  const isLatin = /^[a-z]$/i.test(event.key);
  const letter = isLatin ? event.key : event.code.replace(/^Key/, '');
  return !event.shiftKey && /^[a-z]$/i.test(letter) ? letter.toUpperCase() : '';
}

/** Whether a node accepts text. */
export function takesText(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.closest(
        'input, textarea, select, [contenteditable], [role="textbox"]'
      ) !== null)
  );
}

/** Whether a key writes text, or may. */
export function isWriting(event: KeyboardEvent): boolean {
  const isPlain = !event.ctrlKey && !event.altKey && !event.metaKey;
  if (isPress(event)) {
    return false;
  }
  return (
    (isPlain && event.key.length === 1) ||
    (isPlain &&
      !event.shiftKey &&
      WRITING.includes(event.key) &&
      !isEntering(event)) ||
    event.isComposing
  );
}

/** Whether the key presses a button. */
function isPress({ key, target }: KeyboardEvent): boolean {
  return (
    (key === 'Enter' || key === ' ') && target instanceof HTMLButtonElement
  );
}

/** Whether the key submits what was typed: in a single-line field, such as the command palette, or one that says so. */
function isEntering({ key, target }: KeyboardEvent): boolean {
  return (
    key === 'Enter' &&
    (target instanceof HTMLInputElement ||
      (target instanceof HTMLTextAreaElement &&
        target.getAttribute('enterkeyhint') === 'send'))
  );
}
