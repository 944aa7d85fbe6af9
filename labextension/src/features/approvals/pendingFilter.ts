/**
 * The filter of the pending requests: a text that a request must contain to be shown. It hides, and decides nothing.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { namesOf, stringify } from '../../api/json';
import type { JsonValue } from '../../api/json';
import type { IApproval } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';
import { visible } from '../../ui/text/visibleText';

/** The filter is offered if more requests than this wait. */
export const FEW = 5;

/** What a person filters by; it lives as long as the list. */
export class PendingFilter {
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get text(): string {
    return this._text;
  }

  set text(text: string) {
    if (text !== this._text) {
      this._text = text;
      this._changed.emit();
    }
  }

  /** Whether anything may be hidden. */
  get isActive(): boolean {
    return this._text.trim() !== '';
  }

  /** Whether a request is shown. */
  accepts(approval: IApproval): boolean {
    return !this.isActive || contains(approval, this._text.trim());
  }

  private readonly _changed = new Signal<this, void>(this);
  private _text = '';
}

/** Whether a request's server, tool, notebook or arguments contain a text, in capitals or not. */
export function contains(approval: IApproval, text: string): boolean {
  const sought = text.toLowerCase();
  return searchable(approval).some(part => part.includes(sought));
}

const known = new WeakMap<IApproval, readonly string[]>();

/** The texts in which is searched, as the page shows them; each argument with its name: `quantity=25`. */
function searchable(approval: IApproval): readonly string[] {
  const { call } = approval;
  const found =
    known.get(approval) ??
    [
      qualifiedName(call),
      call.notebook_path ?? '',
      ...namesOf(call.arguments).map(
        name => `${name}=${textOf(call.arguments[name])}`
      )
    ].map(part => visible(part).toLowerCase());
  known.set(approval, found);
  return found;
}

function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : stringify(value);
}
