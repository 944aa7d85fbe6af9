/**
 * Puts a Content-Security-Policy on a page that was loaded before the server had sandboxed kernels.
 */

/** Hold the page to a policy from now on, beside those that it has. A policy cannot be taken back. */
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
