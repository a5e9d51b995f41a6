// Markdown as it is written for GitHub, rendered for the site: links, headings, tabs.
import { existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { MarkdownRenderer } from "vitepress";

type State = Parameters<Parameters<MarkdownRenderer["core"]["ruler"]["push"]>[1]>[0];
type Token = State["tokens"][number];

export const root = fileURLToPath(new URL("../..", import.meta.url));
const source = "https://github.com/fairlead-mesh/fairlead/blob/main/";

/** page returns where a Markdown file of the repository is on the site, or nothing if it is not part of it. */
export function page(file: string): string | undefined {
  if (file === "site/index.md") return "index.md";
  if (!/^(docs\/.*|README|CHANGELOG|CONTRIBUTING|SECURITY)\.md$/.test(file)) return undefined;
  const name = file.replace(/^docs\//, "");
  if (file === "README.md") return "readme.md";
  // Only names in capitals are changed: the pages of the runbook keep the names of the alerts.
  return name.replace(/^[A-Z]+(?=\.md$)/, (all) => all.toLowerCase()).replace(/(^|\/)README\.md$/, "$1index.md");
}

/** slug makes the anchor of a heading as GitHub does, which internal/test/doccheck expects too. */
export function slug(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

/** target rewrites a link relative to a file of the repository: to a page of the site, or to the file on GitHub. */
export function target(from: string, href: string): string {
  if (/^([a-z]+:|#|\/)/.test(href)) return href;
  const [, name = "", anchor = ""] = /^([^#]*)(#.*)?$/.exec(href) ?? [];
  const file = path.posix.join(path.posix.dirname(from), name).replace(/\/$/, "");
  const found = existsSync(path.join(root, file));
  if (!found) throw new Error(`${from}: there is no ${file}`);
  const to = page(file);
  if (to) return `/${to}${anchor}`;
  return `${statSync(path.join(root, file)).isDirectory() ? source.replace("/blob/", "/tree/") : source}${file}${anchor}`;
}

/** title returns the first heading of a file of the repository. */
export function title(file: string): string {
  const found = /^# (.+)$/m.exec(readFileSync(path.join(root, file), "utf8"))?.[1];
  if (!found) throw new Error(`${file} has no heading`);
  return found.replaceAll("`", "");
}

/** link rewrites the links of a text. A link whose text is the name of a file shows the title of the page instead. */
function link(from: string, tokens: Token[]): void {
  for (const [i, t] of tokens.entries()) {
    if (t.children) link(from, t.children);
    if (t.type !== "link_open") continue;
    const href = t.attrGet("href") ?? "";
    t.attrSet("href", target(from, href));
    const text = tokens[i + 1];
    const file = path.posix.join(path.posix.dirname(from), href.replace(/#.*/, ""));
    if (text?.type === "text" && text.content.endsWith(".md") && page(file)) text.content = title(file);
  }
}

const caption = /^\*\*([^*]+)\*\*$/;

/**
 * tabs turns the tokens between `<!-- tabs -->` and `<!-- /tabs -->` into a TabGroup. Each tab begins with a paragraph
 * that is only bold text, its caption.
 */
export function tabs(state: State): void {
  const from = where(state);
  const fail = (line: number | undefined, problem: string): never => {
    throw new Error(`${from}${line === undefined ? "" : `:${line + 1}`}: ${problem}`);
  };
  const html = (content: string): Token => Object.assign(new state.Token("html_block", "", 0), { content });
  const out: Token[] = [];
  let group: { captions: string[]; at: number; line: number | undefined } | undefined;
  for (let i = 0; i < state.tokens.length; i++) {
    const t = state.tokens[i] as Token;
    const line = t.map?.[0];
    const mark = t.type === "html_block" ? t.content.trim() : "";
    const name = t.type === "paragraph_open" && t.level === 0 && caption.exec(state.tokens[i + 1]?.content ?? "")?.[1];
    if (mark === "<!-- tabs -->") {
      if (group || t.level > 0) fail(line, "tabs inside tabs, a list or a quotation");
      group = { captions: [], at: out.length, line };
      out.push(t);
    } else if (mark === "<!-- /tabs -->" && !group) {
      fail(line, "tabs end that did not begin");
    } else if (mark === "<!-- /tabs -->" && group) {
      if (group.captions.length < 2) fail(group.line, "tabs need two captions: lines that are only bold text");
      const titles = state.md.utils.escapeHtml(JSON.stringify(group.captions));
      out[group.at] = html(`<TabGroup :titles="${titles}">\n`);
      out.push(html("</template></TabGroup>\n"));
      group = undefined;
    } else if (group && name) {
      out.push(html(`${group.captions.length ? "</template>" : ""}<template #tab${group.captions.length}>\n`));
      group.captions.push(name);
      i += 2; // its text and its end
    } else {
      if (group && !group.captions.length) fail(line, "tabs begin with a caption: a line that is only bold text");
      out.push(t);
    }
  }
  if (group) fail(group.line, "tabs without an end");
  state.tokens = out;
}

/** where returns the path of the file whose text is rendered, relative to the repository. */
function where(state: State): string {
  const file = path.relative(root, state.env.realPath ?? state.env.path);
  return file === "site/index.md" ? "README.md" : file; // see home.ts
}

export function extend(md: MarkdownRenderer): void {
  md.core.ruler.after("block", "tabs", tabs);
  md.core.ruler.push("repository-links", (state) => link(where(state), state.tokens));
  // An image in HTML is a file of the repository, too, as VitePress assumes only of those in Markdown.
  for (const kind of ["html_inline", "html_block"]) {
    const render = md.renderer.rules[kind];
    md.renderer.rules[kind] = (...args) =>
      (render?.(...args) ?? "").replace(/(<img [^>]*src=")(?![a-z]+:|[/.])/g, "$1./");
  }
  // Braces in text are not Vue expressions.
  const text = md.renderer.rules.text;
  md.renderer.rules.text = (...args) => (text?.(...args) ?? "").replaceAll("{{", "&#123;&#123;");
}
