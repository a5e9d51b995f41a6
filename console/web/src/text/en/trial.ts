/** Texts of the bar that counts down until a policy version reverts. */
export const trial = {
  label: "Policy on trial",
  says: (version: string, author: string, time: string) =>
    `Version ${version} of the policy, saved by ${author}, is on trial. At ${time} it gives way to the one before unless somebody keeps it.`,
  keep: (version: string) => `Keep version ${version}`,
  revert: "Revert now",
  kept: (version: string) => `Version ${version} of the policy stays in force`,
  reverted: (version: string) => `Version ${version} was reverted. Its text is among the versions.`,
  failed: (version: string) => `The trial of version ${version} was not ended`,
  another: "Another version is in force by now.",
};
