export const policy = {
  title: "Policy",
  versionsTitle: "Policy versions",
  versionTitle: (version: string) => `Policy version ${version}`,
  emptyTitle: "No policy yet",
  emptyBody: "Without a policy every node reaches every other.",
};
