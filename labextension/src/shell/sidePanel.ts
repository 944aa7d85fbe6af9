/**
 * The side panel: a frame for the sections that plugins add, in tabs.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { TranslationBundle } from '@jupyterlab/translation';
import { SidePanel, Toolbar } from '@jupyterlab/ui-components';
import { DisposableDelegate } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { Panel } from '@lumino/widgets';
import type { Widget } from '@lumino/widgets';

import type { IAgentBoxPanel, IPanelSection, ISectionHandle } from '../tokens';
import { approvalIcon } from '../ui/icons';
import { badge, PanelTab, PanelTabBar, SectionFrame } from './panelTab';

/** The name of what stands between the two sides of the toolbar. */
const SPACER = 'spacer';

/** What the panel needs. */
export interface ISidePanelOptions {
  shell: JupyterFrontEnd.IShell;
  /** Resolves when the layout of the last visit is restored. */
  restored: Promise<unknown>;
  trans: TranslationBundle;
}

/** See `IAgentBoxPanel`. */
export class AgentBoxPanel extends SidePanel implements IAgentBoxPanel {
  constructor(private readonly _options: ISidePanelOptions) {
    super({ content: new Panel() });
    this.id = 'jupyter-agentbox-panel';
    this.addClass('jp-AgentBox-panel');
    this.title.icon = approvalIcon;
    this.node.tabIndex = -1;
    // What its tabs show says what it is.
    this.content.node.setAttribute('role', 'presentation');
    this.content.node.removeAttribute('aria-label');
    this._bar = new PanelTabBar(_options.trans.__('Approvals'));
    this.header.addWidget(this._bar);
    this._bar.currentChanged.connect(this._onCurrentChanged, this);
    this.toolbar.node.setAttribute('role', 'toolbar');
    this.toolbar.node.setAttribute('aria-label', _options.trans.__('AgentBox'));
    this.toolbar.addItem(SPACER, Toolbar.createSpacerItem());
    this._updateTitle();
    void _options.restored.then(() => {
      // The page was laid out as it was left, which may have closed what was opened meanwhile.
      if (this._isWanted && !this.isVisible) {
        this.reveal();
      }
    });
  }

  get isOnScreen(): boolean {
    return this.isVisible && document.visibilityState === 'visible';
  }

  /** Emits the id of a tab that was selected, by a person or by a command. */
  get tabChosen(): ISignal<this, string> {
    return this._tabChosen;
  }

  reveal(): void {
    this._isWanted = true;
    this._options.shell.activateById(this.id);
  }

  takeFocus(): void {
    if (!this.node.contains(document.activeElement)) {
      this.node.focus({ preventScroll: true });
    }
  }

  showTab(id: string): void {
    const tab = this._tabs.find(({ tabId }) => tabId === id);
    this.reveal();
    if (tab) {
      this._choose(tab);
    }
  }

  addToolbarItem(name: string, item: Widget, side: 'start' | 'end'): void {
    if (side === 'start') {
      this.toolbar.insertBefore(SPACER, name, item);
    } else {
      this.toolbar.addItem(name, item);
    }
  }

  /** Show the tab that was open when the page was left, unless another was selected since. */
  restoreTab(tabId: string): void {
    this._chosen ??= tabId;
    this._settle();
  }

  addSection(section: IPanelSection): ISectionHandle {
    if (this._sections.has(section.id)) {
      throw new Error(`The panel has a section \`${section.id}\` already.`);
    }
    const frame = new SectionFrame(section);
    this._sections.set(section.id, frame);
    const tab = this._tabOf(section.tab ?? section.id);
    tab.add(frame);
    this._place(tab);
    return new SectionHandle(frame, {
      onChange: () => {
        tab.updateTitle();
        this._updateTitle();
      },
      onExpand: () => {
        this._choose(tab);
        tab.reveal(frame);
      },
      onDispose: () => {
        this._remove(tab, frame);
      }
    });
  }

  private _tabOf(tabId: string): PanelTab {
    const known = this._tabs.find(tab => tab.tabId === tabId);
    return known ?? new PanelTab(tabId, this._options.trans);
  }

  /** Insert a tab and its content according to its rank; the Tab key follows the order of the nodes. */
  private _place(tab: PanelTab): void {
    const before = this._tabs.indexOf(tab);
    if (before >= 0) {
      this._tabs.splice(before, 1);
    }
    const after = this._tabs.findIndex(({ rank }) => rank > tab.rank);
    const index = after < 0 ? this._tabs.length : after;
    this._tabs.splice(index, 0, tab);
    if (index !== before) {
      this._bar.insertTab(index, tab.title);
      this.insertWidget(index, tab);
      tab.node.setAttribute('aria-labelledby', this._bar.nodeIdOf(tab));
    }
    this._settle();
  }

  private _remove(tab: PanelTab, frame: SectionFrame): void {
    this._sections.delete(frame.sectionId);
    tab.remove(frame);
    if (tab.isEmpty) {
      this._tabs.splice(this._tabs.indexOf(tab), 1);
      this._bar.removeTab(tab.title);
      tab.dispose();
      this._settle();
    } else {
      this._place(tab);
    }
    this._updateTitle();
  }

  /** Show the selected tab; the first one while that is missing. */
  private _settle(): void {
    const chosen = this._tabs.find(({ tabId }) => tabId === this._chosen);
    const shown = chosen ?? this._tabs.at(0);
    this._isSettling = true;
    this._bar.currentTitle = shown?.title ?? null;
    this._isSettling = false;
    for (const tab of this._tabs) {
      tab.setHidden(tab !== shown);
    }
  }

  private _onCurrentChanged(): void {
    const { currentTitle } = this._bar;
    const tab = this._tabs.find(({ title }) => title === currentTitle);
    if (tab && !this._isSettling) {
      this._choose(tab);
    }
  }

  private _choose({ tabId }: PanelTab): void {
    const isNews = this._chosen !== tabId;
    this._chosen = tabId;
    this._settle();
    if (isNews) {
      this._tabChosen.emit(tabId);
    }
  }

  private _updateTitle(): void {
    const { trans } = this._options;
    const count = [...this._sections.values()].reduce(
      (sum, each) => sum + each.count,
      0
    );
    this.title.caption =
      count > 0
        ? trans._n(
            'Approval requests (%1 waiting)',
            'Approval requests (%1 waiting)',
            count
          )
        : trans.__('Approval requests');
    // The shell has its own data here.
    const dataset = { ...this.title.dataset };
    delete dataset['agentbox-count'];
    this.title.dataset =
      count > 0 ? { ...dataset, 'agentbox-count': badge(count) } : dataset;
  }

  private readonly _bar: PanelTabBar;
  private _chosen: string | null = null;
  private _isSettling = false;
  private _isWanted = false;
  private readonly _sections = new Map<string, SectionFrame>();
  private readonly _tabChosen = new Signal<this, string>(this);
  private readonly _tabs: PanelTab[] = [];
}

interface ISectionEvents {
  onChange: () => void;
  onExpand: () => void;
  onDispose: () => void;
}

class SectionHandle extends DisposableDelegate implements ISectionHandle {
  constructor(
    private readonly _frame: SectionFrame,
    private readonly _events: ISectionEvents
  ) {
    super(_events.onDispose);
  }

  get count(): number {
    return this._frame.count;
  }

  set count(count: number) {
    if (count !== this._frame.count) {
      this._frame.count = count;
      this._events.onChange();
    }
  }

  get problem(): string {
    return this._frame.problem;
  }

  set problem(problem: string) {
    if (problem !== this._frame.problem) {
      this._frame.problem = problem;
      this._events.onChange();
    }
  }

  expand(): void {
    this._events.onExpand();
  }
}
