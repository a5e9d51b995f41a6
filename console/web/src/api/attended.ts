/** For how long after it was used a page counts as used. The console renews a session not more often. */
export const attendedFor = 10 * 60_000;

let used = Date.now();

/** Listens for what a person does. That something moves under a pointer that rests is no deed. */
export function watchUse(page: EventTarget) {
  const note = () => {
    used = Date.now();
  };
  for (const deed of ["pointerdown", "keydown", "wheel"])
    page.addEventListener(deed, note, { capture: true, passive: true });
}

/** Whether somebody uses this page, so that what it asks keeps the session alive. What it asks of its own accord does not. */
export const isAttended = () => Date.now() - used < attendedFor;
