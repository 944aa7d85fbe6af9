/**
 * Agents' threads, turns and items in the REST API and in outputs of cells, as in `docs/reference`.
 */
import { isObject } from './json';

/** The status of code, or of a tool call, in a turn. */
export type ItemStatus =
  'in_progress' | 'completed' | 'failed' | 'declined' | 'interrupted';

/** A message of a person, or a program, to the agent. */
export interface IUserMessage {
  type: 'user_message';
  id: string;
  text: string;
}

/** A message of the agent. Untrusted text. */
export interface IAgentMessage {
  type: 'agent_message';
  id: string;
  text: string;
  phase: 'commentary' | 'final_answer' | null;
}

/** The model's reasoning, as far as its provider shows it. Untrusted text. */
export interface IReasoning {
  type: 'reasoning';
  id: string;
  text: string;
}

/** Code that the agent ran, or wanted to run. */
export interface ICodeRun {
  type: 'code_run';
  id: string;
  code: string;
  status: ItemStatus;
  request_id: string | null;
  text: string;
  error: string;
}

/** A tool that the agent's code called. */
export interface IToolCallItem {
  type: 'tool_call';
  id: string;
  server: string;
  tool: string;
  request_id: string;
  status: ItemStatus;
}

/** A notice of the server about the turn, such as that a limit was reached. */
export interface INotice {
  type: 'notice';
  id: string;
  code: string;
  text: string;
}

/** An item of a turn. */
export type Item =
  | IUserMessage
  | IAgentMessage
  | IReasoning
  | ICodeRun
  | IToolCallItem
  | INotice;

/** The cost of a turn or a thread. */
export interface IUsage {
  requests: number;
  input_tokens: number;
  output_tokens: number;
}

/** A request to the agent, and everything that followed. */
export interface ITurn {
  id: string;
  thread_id: string;
  status: 'in_progress' | 'completed' | 'interrupted' | 'failed';
  items: Item[];
}

/** Reads a turn from the server. */
export type ReadTurn = (turnId: string) => Promise<ITurn>;

/** The state of a thread. `waiting`: for a person's decision. */
export type ThreadState = 'idle' | 'working' | 'waiting' | 'failed';

/** An agent's conversation, as in a list. */
export interface IThread {
  id: string;
  /** Empty if it has no name. */
  name: string;
  notebook_path: string;
  is_archived: boolean;
  state: ThreadState;
  /** The turn in progress. */
  turn_id: string | null;
  kernel_id: string | null;
  /** The last request to the agent. */
  last_prompt: string;
  /** The number of the model's answers. */
  steps: number;
  usage: IUsage;
}

/** A page of threads. */
export interface IThreadPage {
  threads: IThread[];
  next: string | null;
}

/** A message to or from the model. */
export interface IModelMessage {
  /** `user`, `assistant`, `system`, `reasoning`, `tool_call`, `tool`, or another one of the model's provider. */
  role: string;
  /** The tool that was called, or that answered. */
  tool?: string;
  text: string;
}

/** The event for a changed thread. */
export const THREAD_EVENT = 'https://events.jupyter-agentbox.org/thread/v1';

/** The MIME type of an item in an output. */
export const ITEM_MIME_TYPE = 'application/vnd.jupyter-agentbox.item+json';

/** An item in an output. */
export interface IItemOutput {
  threadId: string;
  turnId: string;
  item: Item;
  /** Whether the item is complete. */
  isComplete: boolean;
  /** Whether the kernel marked this, at the turn's end, as the answer. */
  isAnswer: boolean;
}

/** The text fields of each type of item. */
const TEXTS: Readonly<Record<Item['type'], readonly string[]>> = {
  user_message: ['text'],
  agent_message: ['text'],
  reasoning: ['text'],
  code_run: ['code', 'status', 'error'],
  tool_call: ['server', 'tool', 'status'],
  notice: ['text']
};

/** Read the data of an output; `null` if it is not an item. A kernel, or a file, may have put anything there. */
export function readItem(data: unknown): IItemOutput | null {
  if (!isObject(data) || !isObject(data['item'])) {
    return null;
  }
  const { thread_id, turn_id, item: fields, is_complete, is_answer } = data;
  const texts = Object.hasOwn(TEXTS, String(fields['type']))
    ? TEXTS[fields['type'] as Item['type']]
    : null;
  if (!texts?.every(name => typeof fields[name] === 'string')) {
    return null;
  }
  return {
    threadId: typeof thread_id === 'string' ? thread_id : '',
    turnId: typeof turn_id === 'string' ? turn_id : '',
    item: fields as unknown as Item,
    isComplete: is_complete !== false,
    isAnswer: is_answer === true
  };
}
