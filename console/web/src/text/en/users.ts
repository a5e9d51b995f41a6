export const users = {
  title: "Users",
  userTitle: "User",
  emptyTitle: "No users yet",
  emptyBody: "A user owns the nodes of a person.",
};
