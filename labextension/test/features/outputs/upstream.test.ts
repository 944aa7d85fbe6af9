import {
  RenderMimeRegistry,
  standardRendererFactories
} from '@jupyterlab/rendermime';
import { ErrorWidgetView } from '@jupyter-widgets/base';

import { findSurprises, TESTED } from '../../../src/features/outputs/upstream';

const VERSION = `${TESTED.jupyterlab}.4`;

function registry(): RenderMimeRegistry {
  return new RenderMimeRegistry({
    initialFactories: standardRendererFactories
  });
}

test('what the guard replaces is there in the versions that it is built with', () => {
  expect(findSurprises(registry(), VERSION)).toEqual([]);
});

test('another JupyterLab is named', () => {
  expect(findSurprises(registry(), `${TESTED.notebook}.5`)).toEqual([]);
  expect(findSurprises(registry(), '4.4.10')).toEqual([]);
  expect(findSurprises(registry(), '7.4.7')).toEqual([]);
  expect(findSurprises(registry(), '5.0.1')).toEqual([
    'version 5.0.1 (tested: JupyterLab 4.4 and 4.6, Notebook 7.4 and 7.6)'
  ]);
});

test('a sanitizer that cannot be replaced is named', () => {
  const sealed = registry();
  Object.defineProperty(sealed, 'sanitizer', {
    value: sealed.sanitizer,
    configurable: false
  });
  expect(findSurprises(sealed, VERSION)).toEqual([
    'the sanitizer of a registry of renderers'
  ]);
});

test('a method of ipywidgets that has gone is named', () => {
  const { prototype } = ErrorWidgetView;
  const before = prototype.generateErrorMessage;
  Reflect.set(prototype, 'generateErrorMessage', undefined);
  try {
    expect(findSurprises(registry(), VERSION)).toEqual([
      'how the error of a widget is drawn'
    ]);
  } finally {
    prototype.generateErrorMessage = before;
  }
});
