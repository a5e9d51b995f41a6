export const routes = {
  title: "Routes",
  emptyTitle: "No routes yet",
  emptyBody: "A node that advertises a network or offers itself as an exit node shows up here.",
};
