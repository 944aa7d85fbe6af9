import { imageOf } from '../../../src/ui/text/imageValue';
import { ACTL, base64, gif, IMAGES, png } from '../../images';

const types = Object.keys(IMAGES) as (keyof typeof IMAGES)[];

test.each(types)('a %s is found by its bytes', type => {
  const found = {
    type,
    width: 1,
    height: 1,
    size: atob(IMAGES[type]).length,
    refusal: null,
    url: `data:image/${type};base64,${IMAGES[type]}`
  };
  expect(imageOf(IMAGES[type])).toEqual(found);
  expect(imageOf(`data:image/${type};base64,${IMAGES[type]}`)).toEqual(found);
});

test('what is claimed of the bytes does not count', () => {
  const found = imageOf(`data:image/jpeg;base64,${IMAGES.png}`);
  expect(found?.url).toBe(`data:image/png;base64,${IMAGES.png}`);
});

const SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>';

test.each([
  ['an SVG', SVG],
  ['the base64 of an SVG', base64(SVG)],
  ['an SVG as an address', `data:image/svg+xml;base64,${base64(SVG)}`],
  ['an SVG that says that it is a PNG', `data:image/png;base64,${base64(SVG)}`],
  ['an address elsewhere', `https://example.org/${'a'.repeat(50)}.png`],
  ['HTML', `data:text/html;base64,${IMAGES.png}`],
  ['an image behind a blank', ` ${IMAGES.png}`],
  ['an image and more than base64', `${IMAGES.png}" onerror="alert(1)`],
  ['an image with line breaks', `${IMAGES.png.slice(0, 60)}\n${IMAGES.png}`],
  ['a path', `/9j/${'directory/'.repeat(20)}`],
  ['the beginning of an image', IMAGES.png.slice(0, 32) + 'A'.repeat(12)],
  ['an image of no pixels', png(0, 1)],
  ['a screen without frames', gif([1, 1])],
  ['nothing', '']
])('%s is no image', (_, text) => {
  expect(imageOf(text)).toBeNull();
});

test.each([
  ['a PNG of many pixels', png(60_000, 60_000)],
  ['a PNG that is long', png(1_000_000, 1)],
  ['a PNG of more pixels than there are', png(0xffffffff, 0xffffffff)],
  ['a GIF on a large screen', gif([65_535, 65_535], [1, 1])],
  ['a GIF of one pixel, with a frame that is large', gif([1, 1], [60_000, 9])]
])('%s is not drawn', (_, text) => {
  expect(imageOf(text)).toMatchObject({ refusal: 'large', url: null });
});

test.each([
  ['a PNG', png(2, 2, ACTL)],
  ['a GIF', gif([2, 2], [2, 2], [2, 2])]
])('%s that changes while one looks at it is not drawn', (_, text) => {
  expect(imageOf(text)).toMatchObject({ refusal: 'animated', url: null });
});

test('what stands behind an image changes nothing: it is in the text', () => {
  const polyglot = base64(atob(IMAGES.png) + '<script>alert(1)</script>');
  expect(imageOf(polyglot)).toMatchObject({ type: 'png', refusal: null });
  expect(imageOf(polyglot)?.url).toMatch(
    /^data:image\/png;base64,[A-Za-z0-9+/=]+$/
  );
});

test('a text that is too long is not looked at', () => {
  expect(imageOf(IMAGES.png + 'A'.repeat(2_000_000))).toBeNull();
});
