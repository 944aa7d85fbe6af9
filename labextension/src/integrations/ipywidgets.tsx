/**
 * The card as an ipywidget, for cards inside a box, an output widget or another widget.
 *
 * It shows the request and leads to the panel. It has no buttons that decide, because the kernel controls the layout of its
 * widgets: it could cover a button, or put a button under something else.
 * The model has only the id of a request, and no decision ever passes through it.
 */
import { DOMWidgetModel, DOMWidgetView } from '@jupyter-widgets/base';
import type { ExportMap } from '@jupyter-widgets/base';
import React from 'react';
import { createRoot } from 'react-dom/client';
import type { Root } from 'react-dom/client';

import { RequestCard } from '../ui/card/RequestCard';
import { CardProvider } from '../ui/context';
import type { ICardContext } from '../ui/context';
import { keepFromNotebook } from '../ui/guarded/keepFromNotebook';

/** The module name in the Python class. */
export const MODULE_NAME = 'jupyter-agentbox';

/** The version of the model's traits, not of the package. */
export const MODULE_VERSION = '0.1.0';

/** `jupyter_agentbox.kernel.card.ApprovalCard`. */
export class ApprovalCardModel extends DOMWidgetModel {
  override defaults(): Backbone.ObjectHash {
    return {
      ...super.defaults(),
      _model_name: 'ApprovalCardModel',
      _model_module: MODULE_NAME,
      _model_module_version: MODULE_VERSION,
      _view_name: 'ApprovalCardView',
      _view_module: MODULE_NAME,
      _view_module_version: MODULE_VERSION,
      request_id: ''
    };
  }
}

/** The classes that ipywidgets loads by name. */
export function widgetExports(context: ICardContext): ExportMap {
  class ApprovalCardView extends DOMWidgetView {
    override render(): void {
      super.render();
      this.el.classList.add('jp-AgentBox-output');
      keepFromNotebook(this.el);
      this._root = createRoot(this.el);
      this._update();
      this.listenTo(this.model, 'change:request_id', this._update);
    }

    override remove(): void {
      this._root?.unmount();
      super.remove();
    }

    private _update(): void {
      const id: unknown = this.model.get('request_id');
      this._root?.render(
        <CardProvider value={context}>
          <RequestCard
            requestId={typeof id === 'string' ? id : ''}
            isInWidget={true}
          />
        </CardProvider>
      );
    }

    private _root: Root | undefined;
  }
  return { ApprovalCardModel, ApprovalCardView };
}
