/** Milliseconds that a button must have been in its place, on a card that is not covered, before it takes a gesture. */
export const GUARD_TIME = 500;
