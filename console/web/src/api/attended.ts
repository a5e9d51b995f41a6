/** How long a page counts as used after the last input. The console does not renew a session more often than this. */
export const attendedFor = 10 * 60_000;

let used = Date.now();

/** Listens for user input. Something that moves under a resting pointer does not count. */
export function watchUse(page: EventTarget) {
  const note = () => {
    used = Date.now();
  };
  for (const deed of ["pointerdown", "keydown", "wheel"])
    page.addEventListener(deed, note, { capture: true, passive: true });
}

/** Whether somebody is using this page. Only then do its requests, including automatic ones, keep the session alive. */
export const isAttended = () => Date.now() - used < attendedFor;
