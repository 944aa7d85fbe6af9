/**
 * Removes from kernels' messages what would make the page load a module.
 *
 * A kernel can name a module for a comm. The page's settings name what reads the messages of all kernels, and there a
 * message may be changed; a listener of messages may not.
 */
import type { ServerConnection } from '@jupyterlab/services';

type Serializer = NonNullable<ServerConnection.ISettings['serializer']>;

/** Prevent comms from naming a module while this returns true; return whether the settings could be changed. */
export function withoutModules(
  settings: ServerConnection.ISettings,
  isRefused: () => boolean
): boolean {
  const { serializer } = settings;
  const deserialize: Serializer['deserialize'] = (data, protocol) => {
    const message = serializer.deserialize(data, protocol);
    if (message.header.msg_type === 'comm_open' && isRefused()) {
      delete (message.content as { target_module?: string }).target_module;
    }
    return message;
  };
  const guarded = Object.assign(Object.create(serializer) as Serializer, {
    serialize: serializer.serialize.bind(serializer),
    deserialize
  });
  return Reflect.set(settings, 'serializer', guarded);
}
