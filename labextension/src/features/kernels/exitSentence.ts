/**
 * Says in the language of the page why a kernel ended.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IKernelExit } from '../../api/protocol';
import { localeOf } from '../../ui/text/language';
import { label } from '../../ui/text/visibleText';

/** A sentence about a kernel's end; `name` is that of its notebook. */
export function exitSentence(
  name: string,
  end: IKernelExit,
  trans: TranslationBundle
): string {
  if (end.limit !== null) {
    return limitSentence(name, end, end.limit, trans);
  }
  if (end.signal !== null) {
    return trans.__(
      'The kernel of %1 ended: its process was killed by %2.',
      name,
      label(end.signal)
    );
  }
  return end.status !== null
    ? trans.__(
        'The kernel of %1 ended: its process exited with status %2.',
        name,
        end.status
      )
    : trans.__('The kernel of %1 ended: %2.', name, label(end.reason));
}

function limitSentence(
  name: string,
  { most, reason }: IKernelExit,
  limit: string,
  trans: TranslationBundle
): string {
  if (limit === 'memory_limit' && most !== null) {
    return trans.__(
      'The sandbox stopped the kernel of %1: it needed more than %2 of memory. Raise `%3` to allow more.',
      name,
      describeSize(most, trans),
      limit
    );
  }
  if (limit === 'process_limit' && most !== null) {
    return trans._n(
      'The sandbox stopped the kernel of %2: it had more than %3 process or thread. Raise `%4` to allow more.',
      'The sandbox stopped the kernel of %2: it had more than %3 processes and threads. Raise `%4` to allow more.',
      most,
      name,
      most.toLocaleString(localeOf(trans)),
      limit
    );
  }
  return trans.__(
    'The sandbox stopped the kernel of %1: %2. Raise `%3` to allow more.',
    name,
    label(reason),
    label(limit)
  );
}

/** A number of bytes in the largest unit of which there is one. */
export function describeSize(bytes: number, trans: TranslationBundle): string {
  const write = (unit: number): string =>
    (bytes / 1024 ** unit).toLocaleString(localeOf(trans), {
      maximumFractionDigits: 2
    });
  if (bytes >= 1024 ** 4) {
    return trans.__('%1 TiB', write(4));
  }
  if (bytes >= 1024 ** 3) {
    return trans.__('%1 GiB', write(3));
  }
  if (bytes >= 1024 ** 2) {
    return trans.__('%1 MiB', write(2));
  }
  return bytes >= 1024
    ? trans.__('%1 KiB', write(1))
    : trans._n('%2 byte', '%2 bytes', bytes, write(0));
}
