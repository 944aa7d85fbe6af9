/**
 * The whole address of a page, with the host set apart: that is what tells whose page it is.
 */
import React from 'react';

import { VisibleText } from '../components/VisibleText';

/** An address that is text: nothing is fetched, and nothing opens, before a button is pressed. */
export function Address({ url }: { url: string }): JSX.Element {
  const { before, host, after } = partsOf(url);
  return (
    <p className="jp-AgentBox-address" data-url={url}>
      <VisibleText text={before} />
      <strong>
        <VisibleText text={host} />
      </strong>
      <VisibleText text={after} />
    </p>
  );
}

/** What stands before the host, the host as the browser will ask for it, and what stands after. */
export function partsOf(url: string): {
  before: string;
  host: string;
  after: string;
} {
  const parsed = parse(url);
  if (!parsed) {
    return { before: '', host: '', after: url };
  }
  const before = `${parsed.protocol}//`;
  const { host } = parsed;
  return {
    before,
    host,
    after: parsed.href.slice(before.length + host.length)
  };
}

/** Open a page that cannot reach this one; only an address of a page, whatever the server sent. */
export function openPage(url: string): void {
  const parsed = parse(url);
  if (parsed) {
    window.open(parsed.href, '_blank', 'noopener,noreferrer');
  }
}

function parse(url: string): URL | null {
  try {
    const parsed = new URL(url);
    const isPage = ['http:', 'https:'].includes(parsed.protocol);
    return isPage && !parsed.username && !parsed.password ? parsed : null;
  } catch {
    return null;
  }
}
