import { defineConfig } from "vitest/config";

/** Tests in a browser against the real console. `make console-test` starts the rig that they ask for stages. */
export default defineConfig({
  test: {
    environment: "node",
    include: ["e2e/**/*.e2e.ts"],
    exclude: ["e2e/budgets.e2e.ts"],
    testTimeout: 120_000,
    hookTimeout: 240_000,
    maxWorkers: 2,
    // One after the other within a file: the tests of a file tell one story.
    sequence: { concurrent: false, shuffle: false },
  },
});
