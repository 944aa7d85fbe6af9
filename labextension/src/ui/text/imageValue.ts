/**
 * What a text is as an image, from its own bytes: what is claimed of it does not count.
 *
 * Only PNG, JPEG, GIF and WebP. A header that cannot be read to its end is no image; one that would take much memory, or
 * that changes while one looks at it, is told and not drawn.
 */

/** An image in a text. */
export interface IImageValue {
  type: ImageType;
  /** Pixels. */
  width: number;
  height: number;
  /** Bytes of its file. */
  size: number;
  /** Why it is not drawn; `null` if it is. */
  refusal: 'large' | 'animated' | null;
  /** What draws it; `null` if it is not drawn. */
  url: string | null;
}

export type ImageType = 'png' | 'jpeg' | 'gif' | 'webp';

/** Characters of base64 at most: more is not looked at. */
const MAX_LENGTH = 2_000_000;

/** Characters of base64 at least: a path may begin like a JPEG. */
const MIN_LENGTH = 40;

/** Pixels of an image that is drawn: they take four bytes each, however short the file is. */
const MAX_SIDE = 8192;
const MAX_PIXELS = 8_000_000;

const DATA_URL = /^data:image\/(?:png|jpeg|gif|webp);base64,/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
/** How the files begin, in base64. */
const BEGINNINGS = /^(?:iVBORw0KGgo|\/9j\/|R0lGOD[dl]h|UklGR)/;

/** What a header says. */
interface IHeader {
  type: ImageType;
  width: number;
  height: number;
  isAnimated: boolean;
}

/** Find the image that a text is; `null` if it is none. */
export function imageOf(text: string): IImageValue | null {
  if (text.length > MAX_LENGTH || text.length < MIN_LENGTH) {
    return null;
  }
  const base64 = text.replace(DATA_URL, '');
  if (!BEGINNINGS.test(base64) || !BASE64.test(base64)) {
    return null;
  }
  const bytes = decode(base64);
  const header = bytes && headerOf(bytes);
  if (!header || header.width === 0 || header.height === 0) {
    return null;
  }
  const { type, width, height, isAnimated } = header;
  const isLarge =
    width > MAX_SIDE || height > MAX_SIDE || width * height > MAX_PIXELS;
  const refusal = isLarge ? 'large' : isAnimated ? 'animated' : null;
  // The type is that of the bytes, and the characters are those of base64: nothing else can get into the address.
  const url = refusal ? null : `data:image/${type};base64,${base64}`;
  return { type, width, height, size: bytes.length, refusal, url };
}

function decode(base64: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(base64), each => each.charCodeAt(0));
  } catch {
    return null;
  }
}

function headerOf(bytes: Uint8Array): IHeader | null {
  const view = new DataView(bytes.buffer);
  try {
    return png(view) ?? gif(view) ?? webp(view) ?? jpeg(view);
  } catch (error) {
    if (error instanceof RangeError) {
      return null; // it ends before its header does
    }
    throw error;
  }
}

/** Bytes as Latin-1, for marks. */
function mark(view: DataView, at: number, length: number): string {
  let text = '';
  for (let index = at; index < at + length; index++) {
    text += String.fromCharCode(view.getUint8(index));
  }
  return text;
}

/** PNG, third edition, 5 and 11: its first chunk is IHDR; acTL before the image makes it an animation. */
function png(view: DataView): IHeader | null {
  if (mark(view, 0, 8) !== '\x89PNG\r\n\x1a\n') {
    return null;
  }
  if (view.getUint32(8) !== 13 || mark(view, 12, 4) !== 'IHDR') {
    return null;
  }
  const [width, height] = [view.getUint32(16), view.getUint32(20)];
  let isAnimated = false;
  for (let at = 33; mark(view, at + 4, 4) !== 'IDAT';) {
    isAnimated ||= mark(view, at + 4, 4) === 'acTL';
    at += 12 + view.getUint32(at);
  }
  return { type: 'png', width, height, isAnimated };
}

/** GIF89a, 17 to 26. A frame may be larger than the screen that the header names: the largest counts. */
function gif(view: DataView): IHeader | null {
  if (!/^GIF8[79]a$/.test(mark(view, 0, 6))) {
    return null;
  }
  let width = view.getUint16(6, true);
  let height = view.getUint16(8, true);
  let frames = 0;
  let at = 13 + tableSize(view.getUint8(10));
  for (;;) {
    const block = at < view.byteLength ? view.getUint8(at) : 0x3b;
    if (block === 0x21) {
      at = afterSubBlocks(view, at + 2);
    } else if (block === 0x2c) {
      frames += 1;
      const [left, top] = [at + 1, at + 3].map(each =>
        view.getUint16(each, true)
      );
      width = Math.max(width, left + view.getUint16(at + 5, true));
      height = Math.max(height, top + view.getUint16(at + 7, true));
      at = afterSubBlocks(view, at + 11 + tableSize(view.getUint8(at + 9)));
    } else if (block === 0x3b) {
      return frames > 0
        ? { type: 'gif', width, height, isAnimated: frames > 1 }
        : null;
    } else {
      return null;
    }
  }
}

/** Bytes of a color table, from the flags that say how large it is. */
function tableSize(flags: number): number {
  return flags & 0x80 ? 3 << ((flags & 7) + 1) : 0;
}

function afterSubBlocks(view: DataView, start: number): number {
  let at = start;
  while (view.getUint8(at) !== 0) {
    at += 1 + view.getUint8(at);
  }
  return at + 1;
}

/** RFC 9649: lossy (VP8), lossless (VP8L) or extended (VP8X). */
function webp(view: DataView): IHeader | null {
  if (mark(view, 0, 4) !== 'RIFF' || mark(view, 8, 4) !== 'WEBP') {
    return null;
  }
  const type = 'webp' as const;
  switch (mark(view, 12, 4)) {
    case 'VP8 ': {
      const [width, height] = [26, 28].map(
        at => view.getUint16(at, true) & 0x3fff
      );
      return mark(view, 23, 3) === '\x9d\x01\x2a'
        ? { type, width, height, isAnimated: false }
        : null;
    }
    case 'VP8L': {
      const bits = view.getUint32(21, true);
      const [width, height] = [bits, bits >>> 14].map(
        each => (each & 0x3fff) + 1
      );
      return view.getUint8(20) === 0x2f
        ? { type, width, height, isAnimated: false }
        : null;
    }
    case 'VP8X': {
      const [width, height] = [24, 27].map(
        at =>
          (view.getUint8(at) |
            (view.getUint8(at + 1) << 8) |
            (view.getUint8(at + 2) << 16)) +
          1
      );
      const isAnimated = (view.getUint8(20) & 2) !== 0;
      return { type, width, height, isAnimated };
    }
    default:
      return null;
  }
}

/** ITU-T T.81, B.2: the frame header is before the first scan. */
function jpeg(view: DataView): IHeader | null {
  if (view.getUint16(0) !== 0xffd8) {
    return null;
  }
  for (let at = 2; view.getUint8(at) === 0xff;) {
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) {
      at += 1; // a fill byte
    } else if (marker >= 0xc0 && marker <= 0xc2) {
      const [height, width] = [at + 5, at + 7].map(each =>
        view.getUint16(each)
      );
      return { type: 'jpeg', width, height, isAnimated: false };
    } else if (marker < 0xc0 || marker > 0xfe || NO_FRAME.includes(marker)) {
      return null;
    } else {
      at += 2 + view.getUint16(at + 2);
    }
  }
  return null;
}

/** Markers after which there is no frame header that browsers draw: end of the image, start of a scan, other codings. */
const NO_FRAME = [
  0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2,
  0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda
];
