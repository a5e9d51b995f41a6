import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const longest = ["axe", "dialogs", "login", "roles", "nodes", "shell"];

/** Starts the longest files first, so that no worker is left with one of them at the end. */
class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]) {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex((name) => moduleId.endsWith(`/${name}.e2e.ts`));
      return at < 0 ? longest.length : at;
    };
    return Promise.resolve(files.toSorted((a, b) => rank(a) - rank(b)));
  }
}

/** Browser tests against the real console. `make console-test` starts the rig that provides their stages. */
export default defineConfig({
  test: {
    environment: "node",
    include: ["e2e/**/*.e2e.ts"],
    exclude: ["e2e/budgets.e2e.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    maxWorkers: 2,
    // Tests within a file run one after another, because they depend on each other.
    sequence: { concurrent: false, shuffle: false, sequencer: LongestFirst },
  },
});
