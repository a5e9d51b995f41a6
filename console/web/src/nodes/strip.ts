interface Run {
  from: number;
  length: number;
}

export interface Strip {
  /** While the node was online. */
  bars: Run[];
  /** While it was offline, between two online times. */
  notches: Run[];
}

/**
 * The last day of a node as intervals of equal length, each with the fraction for which it was online. Before the first
 * non-zero fraction, the node did not exist yet; after the last, it is offline. Any gap in between is an outage,
 * however brief.
 */
export function stripOf(shares: readonly number[], online: boolean): Strip {
  const first = shares.findIndex((share) => share > 0);
  const last = shares.findLastIndex((share) => share > 0);
  const strip: Strip = { bars: [], notches: [] };
  const add = (runs: Run[], from: number, length: number) => {
    const before = runs.at(-1);
    if (before && before.from + before.length >= from) before.length = from + length - before.from;
    else runs.push({ from, length });
  };
  for (let i = Math.max(first, 0); i <= last; i++) {
    const share = shares[i] ?? 0;
    const edge = i === first || (i === last && !online);
    if (edge ? share > 0.5 : share > 0) add(strip.bars, i, 1);
    if (share === 1 || edge) continue;
    // An isolated incomplete interval is drawn at full length. Adjacent ones show how much is missing, so that they
    // remain distinguishable.
    const alone = shares[i - 1] === 1 && (shares[i + 1] ?? 1) === 1;
    const length = alone ? 1 : Math.max(0.5, 1 - share);
    add(strip.notches, shares[i + 1] === 0 ? i + 1 - length : i, length);
  }
  return strip;
}
