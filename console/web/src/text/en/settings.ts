export const settings = {
  title: "Settings",
  sections: "Settings sections",
  apiKeys: "API keys",
  appearance: "Appearance",
  server: "Server",
  dns: "DNS",
  webhooks: "Webhooks",
  theme: "Theme",
  themes: { system: "System", light: "Light", dark: "Dark" },
  density: "Density",
  densities: { comfortable: "Comfortable", compact: "Compact" },
  singleKeys: "Single-key shortcuts",
  singleKeysHint:
    "Keys such as j, k and x work without Ctrl. Turn this off if you use voice control or press keys by accident.",
  timeZone: "Time zone",
  timeZones: { local: "Local (this browser)", utc: "UTC" },
  stored: "Saved in this browser.",
};
