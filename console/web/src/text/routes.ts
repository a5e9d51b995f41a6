/** The words of the routes page. They come with it: the first load has only the words that every page needs. */
export { routesPage as words } from "./en/routesPage";
