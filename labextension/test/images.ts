/**
 * Images for tests: those that browsers draw, and those that are made to harm.
 */

/** Images of one pixel, as base64. */
export const IMAGES = {
  png: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  gif: 'R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7',
  webp: 'UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA',
  jpeg:
    '/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////' +
    'wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z'
} as const;

/** The base64 of bytes, given as Latin-1. */
export function base64(bytes: string): string {
  return btoa(bytes);
}

/** A chunk of a PNG, whose checksum nobody looks at. */
function chunk(type: string, data: string): string {
  return number(data.length) + type + data + '\0\0\0\0';
}

function number(value: number): string {
  return String.fromCharCode(
    (value >>> 24) & 0xff,
    (value >>> 16) & 0xff,
    (value >>> 8) & 0xff,
    value & 0xff
  );
}

/** A PNG that says that it has these sides, with chunks between its header and its pixels. */
export function png(width: number, height: number, between = ''): string {
  const header = number(width) + number(height) + '\x08\x06\0\0\0';
  return base64(
    '\x89PNG\r\n\x1a\n' +
      chunk('IHDR', header) +
      between +
      chunk('IDAT', 'x') +
      chunk('IEND', '')
  );
}

/** What makes a PNG an animation. */
export const ACTL = chunk('acTL', number(2) + number(0));

/** A GIF with a screen, and frames that may be larger than it. */
export function gif(
  screen: [number, number],
  ...frames: [number, number][]
): string {
  const sides = (of: [number, number]): string =>
    of.map(each => String.fromCharCode(each & 0xff, each >> 8)).join('');
  return base64(
    `GIF89a${sides(screen)}\0\0\0` +
      frames
        .map(frame => `,\0\0\0\0${sides(frame)}\0\x02\x02\x44\x01\0`)
        .join('') +
      ';'.padEnd(20, '\0')
  );
}
