/**
 * A tab of the side panel, and the sections in it.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Panel, TabBar, Widget } from '@lumino/widgets';

import type { IPanelSection } from '../tokens';
import { FocusAnchor } from '../ui/focusAnchor';

/** The content of a tab: it scrolls, and contains its sections one below the other. */
export class PanelTab extends Panel {
  constructor(
    readonly tabId: string,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.id = `jupyter-agentbox-tab-${tabId}`;
    this.addClass('jp-AgentBox-tabPanel');
    this.node.setAttribute('role', 'tabpanel');
    this.hide();
  }

  override dispose(): void {
    this._anchor.dispose();
    super.dispose();
  }

  /** Its rank among the tabs: that of the section after which it is named. */
  get rank(): number {
    return this._first.rank;
  }

  get isEmpty(): boolean {
    return this._sections.length === 0;
  }

  add(frame: SectionFrame): void {
    const after = this._sections.findIndex(({ rank }) => rank > frame.rank);
    const index = after < 0 ? this._sections.length : after;
    this._sections.splice(index, 0, frame);
    this.insertWidget(index, frame);
    this._anchor.observe(frame.node);
    this.updateTitle();
  }

  remove(frame: SectionFrame): void {
    this._sections.splice(this._sections.indexOf(frame), 1);
    this._anchor.unobserve(frame.node);
    frame.dispose();
    if (!this.isEmpty) {
      this.updateTitle();
      this._anchor.keep();
    }
  }

  /** Scroll to a section, unless it is the only one in the tab. */
  reveal(frame: SectionFrame): void {
    if (this._sections.length > 1) {
      frame.node.scrollIntoView({ block: 'start' });
    }
  }

  /** Show in the tab its title, how much is pending in its sections, and their problems. */
  updateTitle(): void {
    const count = this._sections.reduce((sum, each) => sum + each.count, 0);
    const problem = this._sections.find(each => each.problem)?.problem ?? '';
    const waiting =
      count > 0 ? this._trans._n('%1 waiting', '%1 waiting', count) : '';
    this.title.label = this._first.label;
    this.title.caption = problem || waiting;
    this.title.dataset = {
      ...(count > 0 ? { 'agentbox-badge': badge(count) } : {}),
      ...(problem ? { 'agentbox-problem': '!' } : {})
    };
    for (const each of this._sections) {
      each.hasHeading = this._sections.length > 1;
    }
  }

  /** The section that names the tab. */
  private get _first(): SectionFrame {
    const own = this._sections.find(each => each.sectionId === this.tabId);
    return own ?? this._sections[0];
  }

  private readonly _anchor = new FocusAnchor(this.node);
  private readonly _sections: SectionFrame[] = [];
}

/** A section, with a heading if it shares a tab. Screen readers ignore the box: its content says what it is. */
export class SectionFrame extends Panel {
  constructor({ id, label, rank, widget }: IPanelSection) {
    super();
    this.id = `jupyter-agentbox-section-${id}`;
    this.addClass('jp-AgentBox-section');
    this.label = label;
    this.rank = rank;
    this.sectionId = id;
    this._heading.node.textContent = label;
    this._heading.hide();
    this.addWidget(this._heading);
    this.addWidget(widget);
  }

  count = 0;
  readonly label: string;
  problem = '';
  readonly rank: number;
  readonly sectionId: string;

  set hasHeading(hasHeading: boolean) {
    this._heading.setHidden(!hasHeading);
  }

  private readonly _heading = new Widget({
    node: document.createElement('h3')
  });
}

/** The row of tabs, which cannot be dragged. */
export class PanelTabBar extends TabBar<Widget> {
  constructor(label: string) {
    super({
      insertBehavior: 'none',
      removeBehavior: 'none',
      renderer: new TabRenderer()
    });
    this.name = label;
    this.addClass('jp-AgentBox-tabs');
  }

  /** The id of a tab's node, which its content refers to. */
  nodeIdOf({ title }: PanelTab): string {
    return this.renderer.createTabKey({ title, current: false, zIndex: 0 });
  }

  override readonly renderer!: TabRenderer;

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.update();
  }
}

/** Renders tabs that name the content that they control. */
class TabRenderer extends TabBar.Renderer {
  override createTabARIA(
    data: TabBar.IRenderData<Widget>
  ): ReturnType<TabBar.Renderer['createTabARIA']> {
    return {
      ...super.createTabARIA(data),
      'aria-controls': data.title.owner.id
    };
  }
}

/** A count as a badge shows it. */
export function badge(count: number): string {
  return count > 99 ? '99+' : String(count);
}
