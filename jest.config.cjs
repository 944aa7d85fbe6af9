/** Unit tests of the lab extension's models and forms; what a person does is tested in a browser. */
const esModules = [
  '@jupyter',
  '@jupyter-widgets',
  '@jupyterlab',
  '@microsoft',
  '@rjsf',
  'exenv-es6',
  'lib0',
  'marked',
  'nanoid',
  'y-protocols',
  'yjs'
];

module.exports = {
  testEnvironment: 'jsdom',
  // Some tests wait for modules that load when a person needs them; transforming those takes seconds on a busy machine.
  testTimeout: 30_000,
  setupFiles: ['<rootDir>/labextension/test/browser.ts'],
  roots: ['<rootDir>/labextension/test'],
  moduleNameMapper: { '\\.(css|svg)$': '<rootDir>/labextension/test/asset.ts' },
  transform: {
    '\\.(js|mjs|ts|tsx)$': [
      'ts-jest',
      { tsconfig: 'labextension/test/tsconfig.json', diagnostics: false }
    ]
  },
  transformIgnorePatterns: [`/node_modules/(?!(${esModules.join('|')})/)`]
};
