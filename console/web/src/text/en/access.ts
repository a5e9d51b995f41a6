export const access = {
  title: "Access map",
  emptyTitle: "Who can reach what",
  emptyBody: "Ask whether one node reaches another, and why or why not.",
};
