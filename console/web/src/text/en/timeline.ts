export const timeline = {
  title: "Timeline",
  emptyTitle: "Nothing happened in this time",
  emptyBody: "Changes and the presence of nodes share one axis here.",
};
