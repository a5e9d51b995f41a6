export const users = { title: "Users", userTitle: "User" };
