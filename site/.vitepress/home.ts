// The home page, made of parts of the README, so that nothing is written twice.
import { readFileSync } from "node:fs";
import path from "node:path";
import { root } from "./markdown";

const oneLine = (text: string) =>
  text
    .replace(/\s+/g, " ")
    .replace(/\[([^\]]+)\]\([^)]*\)/g, "$1")
    .replace(/[*`]([^*`]+)[*`]/g, "$1")
    .trim();

function part(readme: string, what: string, pattern: RegExp): string {
  const found = pattern.exec(readme)?.[1];
  if (!found) throw new Error(`README.md: the home page needs ${what}`);
  return found;
}

export function home(): { tagline: string; markdown: string } {
  const readme = readFileSync(path.join(root, "README.md"), "utf8");
  const tagline = oneLine(part(readme, "a first paragraph", /^# Fairlead\n\n([\s\S]+?)\n\n/));
  const picture = part(readme, "a picture", /^(!\[[^\]]+\]\(docs\/images\/[^)]+\))$/m);
  const demo = part(readme, "a section Demo", /^(## Demo\n[\s\S]+?)(?=^## )/m);
  const introduction = part(readme, "an introduction", /^([\s\S]+?)^## /m);
  const features = [...introduction.matchAll(/^- \*\*([^*]+)\*\*([\s\S]+?)(?=\n- |\n\n)/gm)].map(
    ([, title = "", rest = ""]) => ({
      title: oneLine(title).replace(/\.$/, ""),
      details: oneLine(rest)
        .replace(/^[:,] */, "")
        .replace(/^./, (first) => first.toUpperCase()),
    }),
  );
  if (features.length !== 3) throw new Error(`README.md: the home page needs three features, not ${features.length}`);
  const frontmatter = {
    layout: "home",
    hero: {
      name: "Fairlead",
      tagline,
      actions: [
        { theme: "brand", text: "Install", link: "/install" },
        { theme: "alt", text: "Try the demo", link: "#demo" },
        { theme: "alt", text: "How it works", link: "/how-it-works" },
      ],
    },
    features,
  };
  return {
    tagline,
    markdown: `---\n${JSON.stringify(frontmatter)}\n---\n\n${picture.replace("](", "](../")}\n\n${demo}`,
  };
}
