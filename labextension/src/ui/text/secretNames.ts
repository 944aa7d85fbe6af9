/**
 * Names of arguments, and of what is in them, whose values are probably secrets, as far as a name tells.
 */

/** Words of a name, or two of them, that stand for a secret. */
const SECRET_WORDS =
  /^(?:secrets?|tokens?|passwords?|passwd|passphrase|passcode|pwd|credentials?|authorization|cookies?|apikey|bearer|jwt)$/;

/** What is a secret only before `key`: a key alone may be a table's. */
const KEY_KINDS = /^(?:api|access|private|secret|signing|encryption|ssh|auth)$/;

/** Whether a value of this name should not be readable by who looks over a person's shoulder. */
export function isSecretName(name: string): boolean {
  const words = name
    .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u);
  return words.some(
    (word, index) =>
      SECRET_WORDS.test(word) ||
      (/^keys?$/.test(word) && KEY_KINDS.test(words[index - 1] ?? ''))
  );
}
