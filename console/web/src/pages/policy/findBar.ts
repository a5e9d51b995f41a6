import {
  closeSearchPanel,
  findNext,
  findPrevious,
  getSearchQuery,
  replaceAll,
  replaceNext,
  SearchQuery,
  setSearchQuery,
} from "@codemirror/search";
import { type EditorView, type Panel, runScopeHandlers, type ViewUpdate } from "@codemirror/view";
import { policyForms } from "@/text/en/policyForms";

const t = policyForms.find;
const mostCounted = 1000;

const box = "h-8 rounded-md border border-control bg-surface px-2.5 text-13 text-ink max-md:text-[16px]";
const button =
  "inline-flex h-8 items-center rounded-md border border-line-strong bg-surface px-2.5 text-13 font-medium text-ink hover:bg-sunken";

/**
 * The bar for finding and replacing text, in place of CodeMirror's own. It does not use React, because the editor owns
 * it.
 */
export function findBar(view: EditorView): Panel {
  const query = getSearchQuery(view.state);
  const find = input(t.find, query.search, "min-w-40 flex-1");
  // CodeMirror focuses the field with this attribute when the bar is opened again.
  find.setAttribute("main-field", "true");
  const replace = input(t.replace, query.replace, "min-w-40 flex-1");
  const matchCase = check(t.matchCase, query.caseSensitive);
  const found = element("span", "min-w-20 text-12 text-ink-2 tabular-nums");
  found.setAttribute("role", "status");

  const commit = () => {
    const next = new SearchQuery({
      search: find.value,
      replace: replace.value,
      caseSensitive: matchCase.box.checked,
      literal: true,
    });
    if (!next.eq(getSearchQuery(view.state))) view.dispatch({ effects: setSearchQuery.of(next) });
  };
  for (const field of [find, replace]) field.addEventListener("input", commit);
  matchCase.box.addEventListener("change", commit);

  const dom = element("div", "flex flex-wrap items-center gap-2 px-4 py-2 font-sans");
  dom.setAttribute("role", "search");
  dom.setAttribute("aria-label", t.label);
  dom.append(
    find,
    found,
    press(t.previous, () => findPrevious(view)),
    press(t.next, () => findNext(view)),
    matchCase.label,
    element("span", "basis-full h-0"),
    replace,
    press(t.replaceOne, () => replaceNext(view)),
    press(t.replaceAll, () => replaceAll(view)),
    press(t.close, () => {
      closeSearchPanel(view);
      view.focus();
    }),
  );
  dom.addEventListener("keydown", (event) => {
    if (runScopeHandlers(view, event, "search-panel")) event.preventDefault();
    else if (event.key === "Enter" && event.target === find) {
      event.preventDefault();
      (event.shiftKey ? findPrevious : findNext)(view);
    } else if (event.key === "Enter" && event.target === replace) {
      event.preventDefault();
      replaceNext(view);
    }
  });
  const tell = () => {
    found.textContent = places(view);
  };
  tell();
  return {
    dom,
    top: true,
    mount: () => find.select(),
    update(update: ViewUpdate) {
      const next = getSearchQuery(update.state);
      if (next.search !== find.value) find.value = next.search;
      if (next.replace !== replace.value) replace.value = next.replace;
      if (update.docChanged || update.selectionSet || !next.eq(getSearchQuery(update.startState))) tell();
    },
  };
}

/** "2 of 7": which match is selected, and how many there are. */
function places(view: EditorView): string {
  const query = getSearchQuery(view.state);
  if (!query.search) return "";
  const { from, to } = view.state.selection.main;
  let count = 0;
  let at = 0;
  const cursor = query.getCursor(view.state);
  for (let next = cursor.next(); !next.done && count < mostCounted; next = cursor.next()) {
    count++;
    if (next.value.from === from && next.value.to === to) at = count;
  }
  return count === 0 ? t.none : t.places(at, count, count === mostCounted);
}

function element<K extends keyof HTMLElementTagNameMap>(name: K, className: string): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  made.className = className;
  return made;
}

function input(label: string, value: string, className: string): HTMLInputElement {
  const made = element("input", `${box} ${className}`);
  made.setAttribute("aria-label", label);
  made.placeholder = label;
  made.value = value;
  made.autocomplete = "off";
  made.spellcheck = false;
  return made;
}

function check(label: string, checked: boolean) {
  const made = element("label", "inline-flex items-center gap-1.5 text-12 text-ink-2");
  const control = element("input", "size-4 accent-accent");
  control.type = "checkbox";
  control.checked = checked;
  made.append(control, label);
  return { label: made, box: control };
}

function press(label: string, run: () => unknown): HTMLButtonElement {
  const made = element("button", button);
  made.type = "button";
  made.textContent = label;
  made.addEventListener("click", run);
  return made;
}
