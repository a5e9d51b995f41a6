export const policy = {
  title: "Policy",
  versionTitle: (version: string) => `Policy version ${version}`,
  key: (name: string) => `API key ${name}`,
  failed: "Couldn't load the policy",
};
