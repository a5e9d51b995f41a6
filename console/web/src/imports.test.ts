import { posix } from "node:path";
import { describe, expect, test } from "vitest";

/**
 * Every import counts, including types and lazy imports: files that import each other cannot be understood separately.
 */
const importsOf = (source: string) =>
  Array.from(
    source.matchAll(/(?:\bfrom |^import |\bimport\(|\bglob(?:<\w+>)?\()"((?:\.|@\/)[^"]*)"/gm),
    ([, name = ""]) => name,
  );

/** The import cycles among files, each as a list of files that ends where it started. */
function importCycles(files: Readonly<Record<string, string>>): string[] {
  const cycles: string[] = [];
  const finished = new Set<string>();
  const walk = (file: string, path: readonly string[]) => {
    const start = path.indexOf(file);
    if (start >= 0) cycles.push([...path.slice(start), file].join(" → "));
    if (start >= 0 || finished.has(file)) return;
    for (const name of importsOf(files[file] ?? "")) {
      const base = name.startsWith("@/") ? name.slice(2) : posix.join(posix.dirname(file), name);
      // A glob pattern stands for all files of a folder.
      const found = base.includes("*")
        ? Object.keys(files).filter((at) => posix.dirname(at) === posix.dirname(base))
        : ["", ".ts", ".tsx", "/index.ts", "/index.tsx"].map((end) => base + end).filter((at) => at in files);
      for (const at of found) walk(at, [...path, file]);
    }
    finished.add(file);
  };
  for (const file of Object.keys(files)) walk(file, []);
  return cycles;
}

describe("imports", () => {
  const sources = import.meta.glob<string>(["./**/*.{ts,tsx}", "!./**/*.test.*"], {
    query: "?raw",
    import: "default",
    eager: true,
  });
  const files = Object.fromEntries(Object.entries(sources).map(([path, source]) => [posix.normalize(path), source]));

  test("form no cycle", () => {
    expect(Object.keys(files)).toContain("pages/nodes/index.tsx");
    expect(importCycles(files)).toEqual([]);
  });

  test("that form a cycle are found", () => {
    const seeded = {
      "main.ts": 'import { a } from "@/a";',
      "a/index.ts": 'export * from "./b";\nimport "../style";',
      "a/b.tsx": 'import type {\n  C,\n} from "../c";',
      "c.ts": 'const later = import("@/a");',
      "style.ts": "",
    };
    expect(importCycles(seeded)).toEqual(["a/index.ts → a/b.tsx → c.ts → a/index.ts"]);
    const all = { "a.ts": 'import.meta.glob<A>("./b/*.ts")', "b/c.ts": 'import type { A } from "../a";' };
    expect(importCycles(all)).toEqual(["a.ts → b/c.ts → a.ts"]);
  });
});
