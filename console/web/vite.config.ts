import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/**
 * Writes name.br and name.gz next to each asset that compression makes smaller, so that the console does not have to
 * compress anything itself.
 */
function compressedCopies(): Plugin {
  let assets = "";
  return {
    name: "compressed-copies",
    apply: "build",
    configResolved(config) {
      assets = join(config.root, config.build.outDir, "assets");
    },
    // Only after a successful build, so that the error of a failed one is shown.
    writeBundle() {
      for (const name of readdirSync(assets)) {
        if (!/\.(js|css|svg)$/.test(name)) continue;
        const text = readFileSync(join(assets, name));
        const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
        writeFileSync(join(assets, `${name}.br`), brotliCompressSync(text, quality));
        writeFileSync(join(assets, `${name}.gz`), gzipSync(text, { level: 9 }));
      }
    },
  };
}

/** Keeps dist/.keep, so that the Go package builds even without the bundle. */
function keepFile(): Plugin {
  return {
    name: "keep-file",
    apply: "build",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: ".keep", source: "" });
    },
  };
}

export default defineConfig({
  base: "/admin/",
  plugins: [react(), tailwindcss(), compressedCopies(), keepFile()],
  resolve: { tsconfigPaths: true },
  // The console replaces this placeholder with a new nonce in each response.
  html: { cspNonce: "__CSP_NONCE__" },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        advancedChunks: {
          groups: [
            // A few hundred bytes each: not worth a separate request.
            { name: "icons", test: /node_modules[\\/]lucide-react[\\/]/ },
            // Small, and also used by pages without the editor.
            { name: "jsonc", test: /node_modules[\\/]jsonc-parser[\\/]/ },
            // One chunk for the editor, which only the policy pages load.
            {
              name: "editor",
              test: /node_modules[\\/](@codemirror|@lezer|@marijn|style-mod|w3c-keyname|crelt)[\\/]/,
            },
          ],
        },
      },
    },
  },
  server: {
    port: 5173,
    proxy: { "/admin/api": process.env.CONSOLE_URL ?? "http://127.0.0.1:3000" },
  },
  test: {
    environment: "node",
    // A test that imports a module compiles it first, which takes seconds while the machine does much else.
    testTimeout: 60_000,
    include: ["src/**/*.test.{ts,tsx}"],
    // Test files share their modules, which makes the run four times as fast. Each test restores what it replaces.
    isolate: false,
    unstubGlobals: true,
  },
});
