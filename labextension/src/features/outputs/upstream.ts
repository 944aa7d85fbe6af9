/**
 * What the guard replaces in JupyterLab and ipywidgets though neither promises to keep it, and whether it is still there.
 */
import {
  DOMWidgetView,
  ErrorWidgetView,
  JUPYTER_WIDGETS_VERSION,
  PROTOCOL_VERSION,
  WidgetModel
} from '@jupyter-widgets/base';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';

/** What the guard was tested with; `tests/packaging/test_upstream.py` compares it with what is installed. */
export const TESTED = {
  jupyterlab: '4.6',
  notebook: '7.6',
  widgetManager: '5.0',
  widgets: '2.0.0',
  widgetProtocol: '2.1.0'
} as const;

/** Take the version of the application, and say what is not as the guard knows it, in words for the browser's console. */
export function findSurprises(
  registry: IRenderMimeRegistry,
  version: string
): string[] {
  const renderer = registry.createRenderer('text/html');
  const checks: [boolean, string][] = [
    [
      [TESTED.jupyterlab, TESTED.notebook].some(tested =>
        version.startsWith(`${tested}.`)
      ),
      `version ${version} (tested: JupyterLab ${TESTED.jupyterlab}, Notebook ${TESTED.notebook})`
    ],
    [
      isReplaceable(registry, 'sanitizer'),
      'the sanitizer of a registry of renderers'
    ],
    [isReplaceable(renderer, 'sanitizer'), 'the sanitizer of a renderer'],
    [
      (JUPYTER_WIDGETS_VERSION as string) === TESTED.widgets &&
        (PROTOCOL_VERSION as string) === TESTED.widgetProtocol,
      `ipywidgets ${JUPYTER_WIDGETS_VERSION}, protocol ${PROTOCOL_VERSION}`
    ],
    [
      hasMethods(WidgetModel, '_deserialize_state') &&
        hasMethods(WidgetModel.prototype, '_handle_comm_msg'),
      'how the model of a widget takes its state'
    ],
    [
      hasMethods(DOMWidgetView.prototype, 'update', 'update_classes', 'render'),
      'how the view of a widget is drawn'
    ],
    [
      hasMethods(ErrorWidgetView.prototype, 'render', 'generateErrorMessage'),
      'how the error of a widget is drawn'
    ]
  ];
  renderer.dispose();
  return checks.filter(([isKnown]) => !isKnown).map(([, text]) => text);
}

/** Whether an object has a property of its own that can be defined anew. */
function isReplaceable(target: object, name: string): boolean {
  const found = Object.getOwnPropertyDescriptor(target, name);
  return found?.configurable === true && 'value' in found;
}

function hasMethods(target: object, ...names: string[]): boolean {
  return names.every(name => typeof Reflect.get(target, name) === 'function');
}
