/** Texts of the routes page. They are loaded with it: the first load has only the texts that every page needs. */
export { routesPage as words } from "./en/routesPage";
