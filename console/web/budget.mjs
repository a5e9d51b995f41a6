// Fails if a part of the bundle, compressed with gzip, is larger than its budget.
import { readdirSync, readFileSync, statSync } from "node:fs";

const kilobyte = 1000;
const promised = { first: 200 * kilobyte, editor: 145 * kilobyte, other: 25 * kilobyte };

const assets = new URL("dist/assets/", import.meta.url);
const size = (name) => statSync(new URL(`${name}.gz`, assets)).size;

// index.html references the entry chunk and everything that it imports statically.
const index = readFileSync(new URL("dist/index.html", import.meta.url), "utf8");
const first = Array.from(index.matchAll(/assets\/([\w.-]+\.js)"/g), ([, name]) => name);
const lazy = readdirSync(assets).filter((name) => name.endsWith(".js") && !first.includes(name));

const parts = [
  { name: "first load", size: first.reduce((sum, name) => sum + size(name), 0), most: promised.first },
  ...lazy.map((name) => ({
    name,
    size: size(name),
    most: name.startsWith("editor-") ? promised.editor : promised.other,
  })),
];
parts.sort((a, b) => b.size - a.size);
for (const { name, size, most } of parts.slice(0, 8)) {
  process.stdout.write(`${(size / kilobyte).toFixed(1).padStart(7)} of ${most / kilobyte} kB  ${name}\n`);
}
if (parts.some(({ size, most }) => size > most)) {
  process.stderr.write("too large: import less, or load it when it is needed\n");
  process.exitCode = 1;
}
