/** Texts of the settings pages. They are loaded with them: the first load has only the texts that every page needs. */
export { apiKeys } from "./en/apiKeys";
export { clusterPage } from "./en/clusterPage";
export { dnsPage } from "./en/dnsPage";
export { serverPage } from "./en/serverPage";
export { sessionsPage } from "./en/sessionsPage";
export { webhooksPage } from "./en/webhooksPage";
