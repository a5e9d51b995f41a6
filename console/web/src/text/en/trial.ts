/** Texts of the bar that counts down until a policy version reverts. */
export const trial = {
  label: "Policy on trial",
  says: (version: string, author: string, time: string) =>
    `Policy version ${version}, saved by ${author}, is on trial. It reverts to the previous version at ${time} unless someone keeps it.`,
  keep: (version: string) => `Keep version ${version}`,
  revert: "Revert now",
  kept: (version: string) => `Policy version ${version} kept`,
  reverted: (version: string) => `Policy version ${version} reverted. It remains in the version history.`,
  failed: (version: string) => `Couldn't end the trial of version ${version}`,
  another: "Another version is already active.",
};
