import { posix } from "node:path";
import { expect, test } from "vitest";
import layers from "../e2e/layers.ts?raw";

/** Elements that open on top of a page or beside it. */
const opens = /<(?:Dialog(?:\.Root)?|Confirm|SecretReveal|SidePanel|Menu|RowMenu|Combobox)(?=[\s>]|$)/;
const starts = /^(?:export )?(?:default )?(?:function|const) (\w+)/;

/** The components that render such an element, each with its file. */
function componentsIn(file: string, source: string): string[] {
  let component = "";
  return source.split("\n").flatMap((line) => {
    component = starts.exec(line)?.[1] ?? component;
    return opens.test(line) ? [`${file.replace(/\.tsx$/, "")} ${component}`] : [];
  });
}

test("every dialog, menu and panel is checked for accessibility by e2e/dialogs.e2e.ts", () => {
  const sources = import.meta.glob<string>(["./**/*.tsx", "!./ui/{dialog,menu,secret}.tsx"], {
    query: "?raw",
    import: "default",
    eager: true,
  });
  const found = Object.entries(sources).flatMap(([path, source]) => componentsIn(posix.normalize(path), source));
  const checked = Array.from(layers.matchAll(/ of: "(.+?)"/g), ([, of]) => of);
  // Add a layer that is missing here to e2e/layers.ts.
  expect([...new Set(checked)].sort()).toEqual([...new Set(found)].sort());
});
