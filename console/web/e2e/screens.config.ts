import { defineConfig } from "vitest/config";

/** Takes screenshots of every screen, or those of the documentation. `make screens` runs it. */
export default defineConfig({
  test: {
    environment: "node",
    include:
      process.env.SCREENS === "docs"
        ? ["e2e/documentation.ts"]
        : ["e2e/pictures.ts", "e2e/signinpictures.ts", "e2e/peoplepictures.ts"],
    testTimeout: 60_000,
    hookTimeout: 240_000,
  },
});
