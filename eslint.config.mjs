import eslint from '@eslint/js';
import prettier from 'eslint-config-prettier';
import reactHooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  {
    ignores: ['labextension/lib/**', 'jupyter_agentbox/**', 'node_modules/**']
  },
  eslint.configs.recommended,
  ...tseslint.configs.strict,
  reactHooks.configs['recommended-latest'],
  prettier,
  {
    files: ['labextension/**/*.{ts,tsx}'],
    rules: {
      '@typescript-eslint/naming-convention': [
        'error',
        {
          selector: 'interface',
          format: ['PascalCase'],
          custom: { regex: '^I[A-Z]', match: true }
        }
      ],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { args: 'none' }],
      curly: ['error', 'all'],
      eqeqeq: 'error',
      // The browser's language need not be the page's.
      'no-restricted-syntax': [
        'error',
        {
          selector:
            'CallExpression[callee.property.name=/^toLocale.*String$/]:not([arguments.0.callee.name="localeOf"])',
          message: 'Write it in the language of the page: `localeOf(trans)`.'
        }
      ],
      'no-console': ['error', { allow: ['warn', 'error'] }],
      'prefer-arrow-callback': 'error'
    }
  }
);
