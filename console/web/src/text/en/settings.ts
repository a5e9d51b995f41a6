export const settings = {
  title: "Settings",
  sections: "Sections of settings",
  apiKeys: "API keys",
  appearance: "Appearance",
  server: "Server",
  dns: "DNS",
  theme: "Theme",
  themes: { system: "As the system", light: "Light", dark: "Dark" },
  density: "Rows of lists",
  densities: { comfortable: "Comfortable", compact: "Compact" },
  singleKeys: "Single-key shortcuts",
  singleKeysHint:
    "Keys such as j, k and x work without Ctrl. Switch them off if you speak to your computer or press keys by mistake.",
  timeZone: "Times",
  timeZones: { local: "In this browser's time zone", utc: "In UTC" },
  stored: "Kept in this browser.",
};
