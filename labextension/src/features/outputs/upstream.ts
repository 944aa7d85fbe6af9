/**
 * The private parts of JupyterLab and ipywidgets that the guard replaces, and whether they are still there.
 */
import {
  DOMWidgetView,
  ErrorWidgetView,
  JUPYTER_WIDGETS_VERSION,
  PROTOCOL_VERSION,
  WidgetModel
} from '@jupyter-widgets/base';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';

/**
 * The versions with which the guard was tested: the newest, which `tests/packaging/test_upstream.py` compares with the
 * installed ones, and the oldest, of `tests/browser/test_versions.py`.
 */
export const TESTED = {
  jupyterlab: '4.6',
  notebook: '7.6',
  oldestJupyterlab: '4.4',
  oldestNotebook: '7.4',
  widgetManager: '5.0',
  widgets: '2.0.0',
  widgetProtocol: '2.1.0'
} as const;

/** Compare the application with what the guard knows, and describe differences for the browser's console. */
export function findSurprises(
  registry: IRenderMimeRegistry,
  version: string
): string[] {
  const renderer = registry.createRenderer('text/html');
  const checks: [boolean, string][] = [
    [
      [
        TESTED.jupyterlab,
        TESTED.notebook,
        TESTED.oldestJupyterlab,
        TESTED.oldestNotebook
      ].some(tested => version.startsWith(`${tested}.`)),
      `version ${version} (tested: JupyterLab ${TESTED.oldestJupyterlab} and ${TESTED.jupyterlab}, Notebook ${TESTED.oldestNotebook} and ${TESTED.notebook})`
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

/** Whether an object has its own property that can be redefined. */
function isReplaceable(target: object, name: string): boolean {
  const found = Object.getOwnPropertyDescriptor(target, name);
  return found?.configurable === true && 'value' in found;
}

function hasMethods(target: object, ...names: string[]): boolean {
  return names.every(name => typeof Reflect.get(target, name) === 'function');
}
