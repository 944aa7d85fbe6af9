/**
 * Applies a Content-Security-Policy to a page that was loaded before the server had sandboxed kernels.
 */

/** Apply a policy to the page from now on, in addition to those that it has. A policy cannot be removed. */
export function enforcePolicy(policy: string): void {
  const metas = document.head.querySelectorAll<HTMLMetaElement>(
    'meta[http-equiv="Content-Security-Policy"]'
  );
  if (![...metas].some(({ content }) => content === policy)) {
    const meta = document.createElement('meta');
    meta.httpEquiv = 'Content-Security-Policy';
    meta.content = policy;
    document.head.append(meta);
  }
}
