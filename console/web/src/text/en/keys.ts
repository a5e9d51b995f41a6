export const keys = {
  title: "Keys",
  emptyTitle: "No keys yet",
  emptyBody: "A pre-auth key lets a server join without anybody signing in.",
};
