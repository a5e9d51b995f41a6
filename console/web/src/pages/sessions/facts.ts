import type { PersonSession } from "@/api";
import type { Fields } from "@/filter";
import { printable } from "@/text";
import { sessionsPage } from "@/text/settings";

/** What people call a session: whose it is, and where. */
export const sessionName = ({ user, client, description }: PersonSession) =>
  sessionsPage.name(printable(user.name), printable(description) || sessionsPage.clients[client]);

export const sessionFilter: Fields<PersonSession> = {
  text: ({ user, description, lastUsedFrom }, word) =>
    [user.name, user.displayName, user.email, description].some((text) => text.toLowerCase().includes(word)) ||
    lastUsedFrom.startsWith(word),
  fields: {
    user: ({ user }, value) => user.name.toLowerCase() === value,
    client: ({ client }, value) => client === value,
  },
};

export const sessionFilterFields = Object.keys(sessionFilter.fields);
