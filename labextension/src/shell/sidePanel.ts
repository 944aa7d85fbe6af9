/**
 * The side panel: a frame for the sections that plugins add.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { TranslationBundle } from '@jupyterlab/translation';
import { SidePanel } from '@jupyterlab/ui-components';
import { DisposableDelegate } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import { AccordionPanel, Panel, SplitPanel } from '@lumino/widgets';

import type { IAgentBoxPanel, IPanelSection, ISectionHandle } from '../tokens';
import { approvalIcon } from '../ui/icons';

/** What the panel needs. */
export interface ISidePanelOptions {
  shell: JupyterFrontEnd.IShell;
  /** Keeps when the page is laid out as it was left. */
  restored: Promise<unknown>;
  trans: TranslationBundle;
}

/** See `IAgentBoxPanel`. */
export class AgentBoxPanel extends SidePanel implements IAgentBoxPanel {
  constructor(private readonly _options: ISidePanelOptions) {
    super();
    this.id = 'jupyter-agentbox-panel';
    this.addClass('jp-AgentBox-panel');
    this.title.icon = approvalIcon;
    this.node.tabIndex = -1;
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

  reveal(): void {
    this._isWanted = true;
    this._options.shell.activateById(this.id);
  }

  takeFocus(): void {
    if (!this.node.contains(document.activeElement)) {
      this.node.focus({ preventScroll: true });
    }
  }

  addSection(section: IPanelSection): ISectionHandle {
    if (this._sections.some(({ sectionId }) => sectionId === section.id)) {
      throw new Error(`The panel has a section \`${section.id}\` already.`);
    }
    const frame = new SectionFrame(section);
    const after = this._sections.findIndex(({ rank }) => rank > section.rank);
    const index = after < 0 ? this._sections.length : after;
    this._sections.splice(index, 0, frame);
    this.insertWidget(index, frame);
    this._order(index);
    this._share();
    return new SectionHandle(frame, {
      onCount: () => {
        this._updateTitle();
      },
      onExpand: () => {
        this._accordion?.expand(this._sections.indexOf(frame));
      },
      onDispose: () => {
        this._remove(frame);
      }
    });
  }

  private _remove(frame: SectionFrame): void {
    this._sections.splice(this._sections.indexOf(frame), 1);
    frame.dispose();
    this._updateTitle();
  }

  /** Put a section's nodes where it stands: the accordion appends them, and Tab goes by the order of the nodes. */
  private _order(index: number): void {
    const titles = this._accordion?.titles ?? [];
    const { node } = this._sections[index];
    const [title, next] = [titles[index], titles[index + 1]];
    if (next) {
      next.before(title, node);
    }
  }

  /** Give the sections their parts of the height anew. */
  private _share(): void {
    const parts = this._sections.map(SplitPanel.getStretch);
    this._accordion?.setRelativeSizes(parts);
  }

  private get _accordion(): AccordionPanel | null {
    return this.content instanceof AccordionPanel ? this.content : null;
  }

  private _updateTitle(): void {
    const { trans } = this._options;
    const count = this._sections.reduce((sum, each) => sum + each.count, 0);
    this.title.caption =
      count > 0
        ? trans.__('Approval requests (%1 waiting)', count)
        : trans.__('Approval requests');
    // The shell has its own data here.
    const dataset = { ...this.title.dataset };
    delete dataset['agentbox-count'];
    this.title.dataset =
      count > 0 ? { ...dataset, 'agentbox-count': badge(count) } : dataset;
    // Not by the titles' own data: a title that is made anew would lose the focus.
    this._sections.forEach((each, index) => {
      const { dataset: data } = this._accordion?.titles[index] ?? {};
      if (data && each.count > 0) {
        data['agentboxCount'] = badge(each.count);
      } else if (data) {
        delete data['agentboxCount'];
      }
    });
  }

  private _isWanted = false;
  private readonly _sections: SectionFrame[] = [];
}

/** The scrolling box of a section. What is in it says what it is; the box itself is nothing to a screen reader. */
class SectionFrame extends Panel {
  constructor({ id, label, rank, stretch, widget }: IPanelSection) {
    super();
    this.id = `jupyter-agentbox-section-${id}`;
    this.addClass('jp-AgentBox-section');
    this.title.label = label;
    this.sectionId = id;
    this.rank = rank;
    SplitPanel.setStretch(this, stretch ?? 1);
    this.addWidget(widget);
  }

  count = 0;
  readonly rank: number;
  readonly sectionId: string;

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    // The accordion names it in English.
    this.node.setAttribute('role', 'presentation');
    this.node.removeAttribute('aria-labelledby');
  }
}

interface ISectionEvents {
  onCount: () => void;
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
      this._events.onCount();
    }
  }

  expand(): void {
    this._events.onExpand();
  }
}

function badge(count: number): string {
  return count > 99 ? '99+' : String(count);
}
