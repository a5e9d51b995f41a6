import type { Shift } from "./effectWords";

/** For tests: a change of access between one user and one tag, with the given fields. */
export const shift = (part: Partial<Shift>): Shift => ({
  from: { names: ["ana"], count: 1 },
  to: { names: ["tag:db"], count: 1 },
  own: false,
  pairs: 1,
  samples: [],
  online: 0,
  lost: [],
  gained: [],
  lostLines: [],
  gainedLines: [],
  ...part,
});
