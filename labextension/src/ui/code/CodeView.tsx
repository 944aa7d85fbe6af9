/**
 * Code to read, in JupyterLab's editor; as plain text until the editor is there, and if none can be made.
 */
import React from 'react';

import type { ILookAlike } from '../../api/protocol';
import { useSeenPart } from '../hooks/useSeenPart';
import { LinkButton, TextBlock, VisibleText } from '../components/VisibleText';
import { useUnseenReport } from '../components/Unseen';
import { useEditors, useTrans } from '../context';
import { DIFF_TYPE } from '../text/valueKind';
import { openEditor, withPlainBreaks } from './editor';
import type { IOpenEditor } from './editor';
import type { IFinding } from './findings';
import { FindingList } from './FindingList';
import { diffMarks, findingMarks, lookAlikeMarks } from './marks';
import { localeOf } from '../text/language';

/** The number of lines that are shown without scrolling. */
const SHORT_LINES = 16;

/** The number of characters that need no scrolling, however narrow the panel is. */
const SHORT_CODE = 200;

/** The number of characters that are shown as plain text until there is an editor. */
const MAX_PLAIN = 20_000;

/** The distance from the window at which an editor is created, in pixels. */
const MARGIN = '400px';

export interface ICodeViewProps {
  code: string;
  name: string;
  /** The language; by default that of cells. */
  mimeType?: string;
  findings?: readonly IFinding[];
  lookAlikes?: readonly ILookAlike[];
}

/** Code that scrolls if it is long, tells its length, and can be expanded to its full height. */
export function CodeView(props: ICodeViewProps): JSX.Element {
  const { code, name, findings = NONE } = props;
  const trans = useTrans();
  const editors = useEditors();
  const box = React.useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = React.useState(false);
  const slot = React.useRef<HTMLDivElement>(null);
  const { editor, state } = useReadOnlyEditor(box, slot, props);
  const hasEditor = editors !== null && state !== 'failed';
  const lines = React.useMemo(() => withPlainBreaks(code).split('\n'), [code]);
  const isLong = lines.length > SHORT_LINES || code.length > 1600;
  // What scrolls must be reached by keyboard.
  const mayScroll = lines.length > SHORT_LINES || code.length > SHORT_CODE;
  const [seen, onScroll] = useSeenPart(box, {
    text: code,
    isFilled: state === 'open' || code.length <= MAX_PLAIN,
    isOpen
  });
  const below = React.useMemo(
    () => lines.slice(Math.floor(seen * lines.length)).join('\n').length,
    [lines, seen]
  );
  // Without an editor, the text block reports.
  useUnseenReport(name, hasEditor ? below : 0);
  return (
    <div className="jp-AgentBox-code">
      <FindingList
        findings={findings}
        onReveal={hasEditor ? line => editor.current?.reveal(line) : undefined}
      />
      {hasEditor ? (
        <div
          ref={box}
          className={`jp-AgentBox-codeBox${isOpen ? ' jp-mod-tall' : ''}`}
          style={{ minHeight: `${Math.min(lines.length, 8) * 1.3}em` }}
          tabIndex={mayScroll ? 0 : undefined}
          role={mayScroll ? 'group' : undefined}
          aria-label={mayScroll ? name : undefined}
          onScroll={onScroll}
        >
          <div ref={slot} />
          {state === 'waiting' && code.length <= MAX_PLAIN ? (
            <pre className="jp-AgentBox-plainCode">
              <VisibleText text={code} />
            </pre>
          ) : null}
        </div>
      ) : (
        <TextBlock text={code} name={name} />
      )}
      {hasEditor && isLong ? (
        <div className="jp-AgentBox-blockFoot">
          <span>
            {trans._n(
              '%2 line',
              '%2 lines',
              lines.length,
              lines.length.toLocaleString(localeOf(trans))
            )}
          </span>
          <LinkButton
            label={isOpen ? trans.__('Show less') : trans.__('Show all lines')}
            isPressed={isOpen}
            onClick={() => {
              setOpen(!isOpen);
            }}
          />
        </div>
      ) : null}
    </div>
  );
}

const NONE: readonly IFinding[] = [];

/** Whether there is an editor, and whether there can never be one. */
type EditorState = 'waiting' | 'open' | 'failed';

/** Open an editor once the box is in view, or nearly, because a list may have a hundred. */
function useReadOnlyEditor(
  box: React.RefObject<HTMLElement>,
  slot: React.RefObject<HTMLElement>,
  { code, name, mimeType, findings, lookAlikes }: ICodeViewProps
): { editor: React.RefObject<IOpenEditor>; state: EditorState } {
  const [state, setState] = React.useState<EditorState>('waiting');
  const editors = useEditors();
  const editor = React.useRef<IOpenEditor | null>(null);
  // A request that is fetched anew has equal findings in another list.
  const marked = JSON.stringify([findings ?? [], lookAlikes ?? []]);
  React.useLayoutEffect(() => {
    const place = slot.current;
    if (!editors || !box.current || !place) {
      return;
    }
    const [found, alike] = JSON.parse(marked) as [IFinding[], ILookAlike[]];
    const open = (): void => {
      const host = document.createElement('div');
      const marks = [
        findingMarks(found),
        lookAlikeMarks(alike),
        mimeType === DIFF_TYPE ? diffMarks() : []
      ];
      const options = { host, code, name, mimeType, marks };
      try {
        editor.current ??= openEditor(editors, options);
      } catch (error) {
        // Whatever an editor of the application fails at, the text has to be shown.
        console.error(error);
        setState('failed');
        return;
      }
      place.append(host);
      setState('open');
    };
    const stop = whenNear(box.current, open);
    return () => {
      stop();
      editor.current?.dispose();
      editor.current = null;
      place.replaceChildren();
      setState('waiting');
    };
  }, [box, slot, editors, code, name, mimeType, marked]);
  return { editor, state };
}

/** Call back once a node is in view, or nearly. */
function whenNear(node: Element, callback: () => void): () => void {
  if (typeof IntersectionObserver === 'undefined' || isNear(node)) {
    callback();
    return () => undefined;
  }
  const observer = new IntersectionObserver(
    entries => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) {
        observer.disconnect();
        callback();
      }
    },
    { rootMargin: MARGIN }
  );
  observer.observe(node);
  return () => {
    observer.disconnect();
  };
}

function isNear(node: Element): boolean {
  const { top, bottom, width } = node.getBoundingClientRect();
  return width > 0 && bottom >= 0 && top <= window.innerHeight;
}
