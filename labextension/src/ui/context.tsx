/**
 * What the components of a page share, so that they need not pass it on.
 */
import type { IEditorFactoryService } from '@jupyterlab/codeeditor';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import React from 'react';

import type { IApproval, ICellUpdate } from '../api/protocol';
import type { FeatureName, IFeatureLock } from '../api/rules';
import type {
  IApprovalModel,
  IOrigins,
  IQuestionsModel
} from '../internalTokens';
import { Doings } from './doings';
import { languageOf } from './text/language';
import type { ILanguage } from './text/language';
import type { NameOf } from './text/reviewers';
import { label } from './text/visibleText';

/** The features that the site's administrator turned off. */
export interface ISiteLocks {
  readonly changed: ISignal<object, void>;
  /** Who turned a feature off; `null` if nobody did, or if that is unknown. */
  lockOf(feature: FeatureName): IFeatureLock | null;
}

/** Finds a value that is not shown, and inserts a cell that shows it. */
export interface IMissingValue {
  /** The variable that has it, according to the code of a card's cell; `null` if none has. */
  nameFor: (card: HTMLElement) => string | null;
  /** Insert a cell with that name below the card's cell. Nothing is run. */
  insert: (card: HTMLElement, name: string) => void;
}

/** A value that a person opens on a page of its own. */
export interface IOpenedValue {
  name: string;
  text: string;
  /** The language; a plain text has `text/plain`. */
  mimeType: string;
}

/** The context of every view of requests. */
export interface ICardContext extends ILanguage {
  model: IApprovalModel;
  origins: IOrigins;
  /** Says who answered a request. */
  nameOf: NameOf;
  /** The questions of servers; a page may have no such model. */
  questions?: IQuestionsModel | null;
  /** The features that the site turned off; unknown on some pages. */
  locks?: ISiteLocks | null;
  /** Creates editors for code; an application may have none. */
  editors?: IEditorFactoryService | null;
  /** Show the panel and go to a request in it; not needed by views in the panel. */
  openInPanel?: (id: string) => void;
  /** Show the panel and go to where a request can be decided with others. */
  openTogether?: (id: string) => void;
  /** Show the panel; not needed by views in it. */
  openPanel?: () => void;
  /** Is told of a request whose cell was gone to, and has no card for it. */
  noCard?: (approval: IApproval) => void;
  /** Show a long value on a page of its own. */
  openValue?: (value: IOpenedValue) => void;
  /** Move the focus on from a card that was decided. */
  leave?: (card: HTMLElement) => void;
  /** Give the focus back to where the person was before they came to a card, or to the panel's list. */
  restoreFocus?: (from: HTMLElement) => void;
  /** Is told that a person answers here. */
  answered?: () => void;
  /** Open the form of a rule that is prefilled from a request; an application may have none. */
  makeRule?: (id: string, effect: 'allow' | 'deny') => void;
  /** Ask the server for the code of a cell with a person's edits. */
  proposeUpdate?: (id: string, source: string) => Promise<ICellUpdate>;
  /** Where the value of a call of this tool is, if the output below its cell is missing. */
  missingValueOf?: (tool: string) => IMissingValue;
}

const Language = React.createContext<ILanguage>(languageOf(null));

const Names = React.createContext<NameOf>(({ reviewer }) => label(reviewer));

const Editors = React.createContext<IEditorFactoryService | null>(null);

const NOTHING_OFF: ISiteLocks = {
  changed: new Signal<object, void>({}),
  lockOf: () => null
};

/** The features that are off; see `useLock`. */
export const Locks = React.createContext<ISiteLocks>(NOTHING_OFF);

const Cards = React.createContext<ICardContext | null>(null);

const SharedDoings = React.createContext<Doings | null>(null);

/** Provides the language to the components inside it. */
export function LanguageProvider(
  props: React.PropsWithChildren<{ value: ILanguage }>
): JSX.Element {
  return (
    <Language.Provider value={props.value}>{props.children}</Language.Provider>
  );
}

/** Tells the components inside it what the site turned off, if that is known. */
export function LocksProvider(
  props: React.PropsWithChildren<{ value: ISiteLocks | null }>
): JSX.Element {
  const { value, children } = props;
  return (
    <Locks.Provider value={value ?? NOTHING_OFF}>{children}</Locks.Provider>
  );
}

/** Provides the context of views of requests to the components inside it. */
export function CardProvider(
  props: React.PropsWithChildren<{ value: ICardContext }>
): JSX.Element {
  const { value, children } = props;
  return (
    <Language.Provider value={value}>
      <Names.Provider value={value.nameOf}>
        <Editors.Provider value={value.editors ?? null}>
          <Locks.Provider value={value.locks ?? NOTHING_OFF}>
            <Cards.Provider value={value}>{children}</Cards.Provider>
          </Locks.Provider>
        </Editors.Provider>
      </Names.Provider>
    </Language.Provider>
  );
}

/** Keeps what the components inside it do, also when they are mounted anew. */
export function DoingsProvider(
  props: React.PropsWithChildren<{ value: Doings }>
): JSX.Element {
  return (
    <SharedDoings.Provider value={props.value}>
      {props.children}
    </SharedDoings.Provider>
  );
}

/** The actions in progress: those of the provider, or a component's own. */
export function useDoings(): Doings {
  const shared = React.useContext(SharedDoings);
  const [own] = React.useState(() => new Doings());
  return shared ?? own;
}

/** The strings of the page's language; by default those of the source. */
export function useTrans(): TranslationBundle {
  return React.useContext(Language).trans;
}

/** The translation of other packages' strings. */
export function useTranslator(): ITranslator {
  return React.useContext(Language).translator;
}

/** Says who answered a request. */
export function useNameOf(): NameOf {
  return React.useContext(Names);
}

/** Creates editors for code; `null` if the application has none. */
export function useEditors(): IEditorFactoryService | null {
  return React.useContext(Editors);
}

/** Shows a long value on a page of its own; `undefined` where there is no such page. */
export function useOpenValue(): ICardContext['openValue'] {
  return React.useContext(Cards)?.openValue;
}

/** The context of views of requests; throws outside a `CardProvider`. */
export function useCardContext(): ICardContext {
  const context = React.useContext(Cards);
  if (!context) {
    throw new Error('a view of requests is within a CardProvider');
  }
  return context;
}
