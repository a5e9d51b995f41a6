export const requests = {
  title: "Requests",
  emptyTitle: "Nobody is waiting",
  emptyBody: "Devices that ask to join without a key, and SSH sessions that need an approval, wait here.",
};
