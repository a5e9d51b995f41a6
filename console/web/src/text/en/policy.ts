export const policy = {
  title: "Policy",
  versionsTitle: "Policy versions",
  versionTitle: (version: string) => `Policy version ${version}`,
  key: (name: string) => `API key ${name}`,
  failed: "Couldn't load the policy",
};
