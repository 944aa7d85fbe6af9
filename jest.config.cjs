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

/** The same JavaScript as that of TypeScript with `tsconfig.json`. */
function swc(parser) {
  return {
    jsc: {
      parser,
      target: 'es2020',
      transform: {
        react: { runtime: 'classic' },
        useDefineForClassFields: false
      }
    },
    module: { type: 'commonjs' },
    sourceMaps: 'inline'
  };
}

module.exports = {
  testEnvironment: 'jsdom',
  // Some tests wait for modules that load when a person needs them; transforming those takes seconds on a busy machine.
  testTimeout: 30_000,
  setupFiles: ['<rootDir>/labextension/test/browser.ts'],
  roots: ['<rootDir>/labextension/test'],
  moduleNameMapper: { '\\.(css|svg)$': '<rootDir>/labextension/test/asset.ts' },
  // Types are checked by `jlpm lint:check`; SWC makes a first run, which transforms all of JupyterLab, much shorter.
  transform: {
    '\\.tsx?$': ['@swc/jest', swc({ syntax: 'typescript', tsx: true })],
    '\\.m?js$': ['@swc/jest', swc({ syntax: 'ecmascript' })]
  },
  // A source that no test loads does not count: Jest looks for such files only below `roots`. The thresholds are for a run of
  // all tests, `jlpm test`, and a little below what there is.
  collectCoverageFrom: ['<rootDir>/labextension/src/**/*.{ts,tsx}'],
  coverageReporters: ['text-summary'],
  coverageThreshold: {
    global: { lines: 88, statements: 88, functions: 83, branches: 82 }
  },
  transformIgnorePatterns: [`/node_modules/(?!(${esModules.join('|')})/)`]
};
