export const policy = {
  title: "Policy",
  versionsTitle: "Policy versions",
  versionTitle: (version: string) => `Policy version ${version}`,
  failed: "The policy could not be read",
};
