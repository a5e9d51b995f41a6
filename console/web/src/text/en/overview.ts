export const overview = {
  title: "Overview",
  emptyTitle: "Nothing needs you",
  emptyBody: "What waits for a decision is listed here.",
};
