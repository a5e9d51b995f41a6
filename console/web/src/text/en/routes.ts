export const routes = {
  title: "Routes",
};
