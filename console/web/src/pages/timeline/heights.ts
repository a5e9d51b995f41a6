/** The heights of the parts of the timeline, in pixels: every label must line up with what is drawn next to it. */
export const heights = { axis: 28, lane: 30, head: 32, strip: 28 };
