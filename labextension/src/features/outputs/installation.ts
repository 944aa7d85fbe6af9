/**
 * Installs the guard of outputs in a page with sandboxed kernels, or where there may be some.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { CodeCell } from '@jupyterlab/cells';
import type { ConsolePanel } from '@jupyterlab/console';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { ServerConnection } from '@jupyterlab/services';

import { watchWidgets } from '../../integrations/sessions';
import type { ISessionTrackers } from '../../integrations/sessions';
import type { ILanguage } from '../../ui/text/language';
import { Gate, PageGate } from './gate';
import type { SessionGate, SessionGates } from './gate';
import { guardRenderer } from './guard';
import type { OutputsHold } from './hold';
import { withoutModules } from './messages';
import { gateOf, guardRegistry } from './registry';
import { findSurprises } from './upstream';
import { guardManager, hardenErrors } from './widgets';

/** What the guard protects, and what it needs to know. */
export interface IOutputsContext extends ISessionTrackers {
  /** The version of the application. */
  version: string;
  rendermime: IRenderMimeRegistry;
  sessions: SessionGates;
  serverSettings: ServerConnection.ISettings;
  sanitizer: IRenderMime.ISanitizer;
  language: ILanguage;
}

/** Guards the outputs of a page. */
export class OutputsGuard {
  constructor(private readonly _context: IOutputsContext) {}

  /** Guard what is open, what was held back, and what is opened from now on. */
  install(held: Pick<OutputsHold, 'release'>): void {
    const { rendermime, notebooks, consoles, serverSettings } = this._context;
    this._warn();
    hardenErrors();
    const isRefused = (): boolean => this._page.verdict !== 'open';
    if (!withoutModules(serverSettings, isRefused)) {
      console.error(
        'Jupyter AgentBox: messages of kernels cannot be changed, so sandboxed kernels get no comms. ' +
          'Tested with JupyterLab 4.6.'
      );
      this._hasComms = false;
    }
    this._guard(rendermime);
    held.release((registry, context) => {
      const gate = context
        ? this._bind(context, registry)
        : this._guard(registry);
      const { language } = this._context;
      return (renderer, mimeType) => {
        guardRenderer(renderer, mimeType, gate, language);
      };
    });
    watchWidgets(notebooks, (panel, wasOpen) => {
      this._addNotebook(panel);
      if (wasOpen) {
        this._renew(panel.sessionContext, () =>
          panel.content.widgets.filter(isCodeCell)
        );
      }
    });
    watchWidgets(consoles, (panel, wasOpen) => {
      this._addConsole(panel);
      if (wasOpen) {
        this._renew(panel.sessionContext, () =>
          [...panel.console.cells].filter(isCodeCell)
        );
      }
    });
  }

  /** Report which replaced parts differ from those with which the guard was tested. */
  private _warn(): void {
    const { rendermime, version } = this._context;
    const surprises = findSurprises(rendermime, version);
    if (surprises.length > 0) {
      console.warn(
        'Jupyter AgentBox: the guard of outputs was not tested with this. ' +
          `Outputs of sandboxed kernels may be blocked more or less than they should be: ${surprises.join('; ')}.`
      );
    }
  }

  private _addNotebook({ content, sessionContext }: NotebookPanel): void {
    this._bind(sessionContext, content.rendermime);
  }

  private _addConsole({ console, sessionContext }: ConsolePanel): void {
    this._bind(sessionContext, console.rendermime);
  }

  private _bind(context: ISessionContext, registry: IRenderMimeRegistry): Gate {
    const gate = gateOf(registry) ?? this._guard(registry);
    gate.bind(this._follow(context));
    if (!this._hasComms) {
      gate.refuseWidgets();
    }
    return gate;
  }

  private _follow(context: ISessionContext): SessionGate {
    const session = this._context.sessions.of(context);
    if (!this._followed.has(context)) {
      this._followed.add(context);
      this._page.add(session, context);
    }
    return session;
  }

  /** The renderers of what was already open are not guarded: a sandboxed kernel there gets new ones. */
  private _renew(context: ISessionContext, cells: () => CodeCell[]): void {
    const session = this._follow(context);
    const renew = (): void => {
      if (session.wasSandboxed) {
        session.changed.disconnect(renew);
        for (const { outputArea } of cells()) {
          outputArea.model.fromJSON(outputArea.model.toJSON());
        }
      }
    };
    session.changed.connect(renew);
    renew();
  }

  private _guard(registry: IRenderMimeRegistry): Gate {
    const { sanitizer, language } = this._context;
    const onWidgetManager = (manager: object | null, gate: Gate): void => {
      if (!guardManager(manager, gate, { sanitizer, language })) {
        console.error(
          'Jupyter AgentBox: an unknown widget manager, so sandboxed kernels get no widgets. ' +
            'Tested with ipywidgets 8.1.'
        );
        gate.refuseWidgets();
      }
    };
    return guardRegistry(
      registry,
      { language, onWidgetManager },
      new Gate(this._page)
    );
  }

  private _hasComms = true;
  private readonly _page = new PageGate();
  private readonly _followed = new WeakSet<ISessionContext>();
}

function isCodeCell(cell: object): cell is CodeCell {
  return 'outputArea' in cell;
}
