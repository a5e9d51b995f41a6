import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { defineConfig } from "vitepress";
import { home } from "./home";
import { extend, page, root, slug } from "./markdown";
import { sidebar } from "./sidebar";

const mark = readFileSync(path.join(root, "console/web/src/mark.svg"), "utf8");

// The browser itself refuses whatever would be requested from another host.
const policy =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'";

export default defineConfig({
  title: "Fairlead",
  description: home().tagline,
  lang: "en",
  // Not https://host/ but https://host/fairlead/, say: SITE_BASE=/fairlead/ make site.
  base: process.env.SITE_BASE ?? "/",
  srcDir: root,
  // Of the other directories, and of other files, nothing is part of the site.
  srcExclude: readdirSync(root, { withFileTypes: true })
    .filter((e) => (e.isDirectory() ? !["docs", "site"].includes(e.name) : !page(e.name)))
    .map((e) => (e.isDirectory() ? `${e.name}/**` : e.name)),
  outDir: path.join(root, "dist/site"),
  cacheDir: path.join(root, "dist/site-cache"),
  rewrites: (file) => page(file) ?? file,
  ignoreDeadLinks: false,
  head: [
    ["meta", { "http-equiv": "Content-Security-Policy", content: policy }],
    ["link", { rel: "icon", type: "image/svg+xml", href: `data:image/svg+xml,${encodeURIComponent(mark)}` }],
  ],
  markdown: {
    anchor: { slugify: slug },
    config: extend,
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    // Nearest relatives of languages that the highlighter does not know.
    languageAlias: { caddyfile: "nginx", haproxy: "nginx", hujson: "jsonc" },
  },
  themeConfig: {
    logo: `data:image/svg+xml,${encodeURIComponent(mark)}`,
    nav: [
      { text: "Get started", link: "/how-it-works" },
      { text: "Guides", link: "/policy" },
      { text: "Operate", link: "/operating" },
      { text: "Reference", link: "/configuration" },
    ],
    sidebar,
    outline: [2, 3],
    search: {
      provider: "local",
      options: {
        // These list tests and former mistakes, which hide the pages that explain something.
        _render: (source, env, md) =>
          /(^|\/)(spec-coverage|[a-z]+-findings)\.md$/.test(env.relativePath) ? "" : md.render(source, env),
      },
    },
    socialLinks: [{ icon: "github", link: "https://github.com/fairlead-mesh/fairlead" }],
  },
  vite: {
    publicDir: false,
    envDir: path.join(root, "site"),
    plugins: [
      {
        name: "home-page",
        enforce: "pre",
        transform: (_, id) => (id === path.join(root, "site/index.md") ? home().markdown : null),
      },
      {
        // Pages are outside of this directory, from where Node.js would find Vue.
        name: "vue-beside-the-theme",
        enforce: "pre",
        resolveId: (id, _, { ssr }) => (ssr && /^vue(\/server-renderer)?$/.test(id) ? { id, external: true } : null),
      },
    ],
    build: { chunkSizeWarningLimit: 2000, assetsInlineLimit: 0 },
  },
});
