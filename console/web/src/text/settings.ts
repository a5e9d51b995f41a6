/** The words of the settings pages. They come with them: the first load has only the words that every page needs. */
export { apiKeys } from "./en/apiKeys";
export { dnsPage } from "./en/dnsPage";
export { serverPage } from "./en/serverPage";
