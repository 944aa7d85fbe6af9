/**
 * Remembers what had the focus before a menu, the palette or a dialog took it.
 *
 * A dialog gives the focus back to what had it when it opened. For one that is opened from a menu that is the menu, which
 * has gone by then, and the focus would be left on the page, where no key does anything.
 */

/** What takes the focus only for a while. */
const PASSING = '.lm-MenuBar, .lm-Menu, .lm-CommandPalette, .jp-Dialog';

/** Watches the one focus of a page. It lives as long as the page. */
export class LastFocus {
  constructor() {
    window.addEventListener('focusin', this._onFocusIn, true);
  }

  /** Remember what had the focus; the result gives it back, unless something else has it by then. */
  hold(): () => void {
    const held = this._last;
    return () => {
      if (document.activeElement === document.body && held?.isConnected) {
        held.focus({ preventScroll: true });
      }
    };
  }

  private readonly _onFocusIn = ({ target }: FocusEvent): void => {
    if (target instanceof HTMLElement && !target.closest(PASSING)) {
      this._last = target;
    }
  };

  private _last: HTMLElement | null = null;
}
