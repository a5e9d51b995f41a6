import type { Page } from "playwright-core";
import { settled } from "./screens";

/** Something that opens on top of a page or beside it: a dialog, a menu, a panel or a list of suggestions. */
export interface Layer {
  /**
   * The component that renders it: its file below src, and its name. A unit test checks that every such component is
   * listed.
   */
  of: string;
  /** Where it is opened, below /admin. */
  path: string;
  open(page: Page): Promise<unknown>;
  /** Closes it; needed only if Esc does not. */
  close?(page: Page): Promise<unknown>;
  /** Whether it leaves something behind, so that the page has to be reloaded. */
  spoils?: true;
  /** Whether no control on the page opens it, so that closing it leaves the focus on the page itself. */
  uncalled?: true;
  /** The only window size in which it exists; both by default. */
  only?: "wide" | "phone";
}

const isPhone = (page: Page) => (page.viewportSize()?.width ?? 0) < 768;
const dialog = (page: Page) => page.getByRole("dialog").last();
const press = (page: Page, name: string | RegExp) => page.locator("main").getByRole("button", { name }).first().click();
const pressIn = (page: Page, name: string | RegExp) => dialog(page).getByRole("button", { name }).click();

/** Opens the menu of the first row, and chooses an item of it. */
const rowMenu = async (page: Page, item?: string | RegExp) => {
  await press(page, /^Actions for /);
  if (item) await page.getByRole("menuitem", { name: item }).click();
};

/** Selects the first rows and presses a button of the bar that appears. */
const withSelected = async (page: Page, count: number, name: string | RegExp) => {
  const main = page.locator("main");
  if (isPhone(page) && (await main.getByRole("button", { name: "Select", exact: true }).count()) > 0)
    await press(page, /^Select$/);
  const boxes = main.getByRole("checkbox", { name: /^Select (?!all)/ });
  await boxes.first().waitFor();
  for (let i = 0; i < count; i++) await boxes.nth(i).check();
  await page.getByRole("toolbar").getByRole("button", { name }).click();
};

/** Opens the details of the first row of a list. */
const openRow = (page: Page) =>
  isPhone(page)
    ? page.locator("main li a, main li button").first().click()
    : page
        .locator("tr[data-row] td")
        .nth(1)
        .click({ position: { x: 4, y: 4 } });

/** Reloads the page with an unsaved policy that is based on the given version. */
const withDraft = async (page: Page, base: "current" | "1") => {
  await page.evaluate(
    async ([base, from, to]) => {
      const { policy, version } = await (await fetch("/admin/api/v1/policy")).json();
      const draft = { base: base === "current" ? version : base, text: policy.replace(from, to) };
      sessionStorage.setItem("policy-draft", JSON.stringify(draft));
    },
    [base, '"acls": [', '"acls": [ // a comment'] as const,
  );
  await page.reload();
  await settled(page);
};

/** Shows a mocked SSH session that waits for approval, because a real one needs a device and a user. */
const withSession = async (page: Page, verb: string) => {
  const session = {
    sourceId: "1",
    sourceName: "laptop",
    sourceUser: "ana",
    targetId: "2",
    targetName: "db-1",
    sshUser: "root",
  };
  const since = new Date().toISOString();
  await page.route("**/api/v1/ssh/pending", (route) =>
    route.fulfill({ json: { sessions: [{ code: "7K3M-9QXD", session, since }] } }),
  );
  await press(page, `${verb} the session from laptop to db-1`);
};

/** Reloads the page with a mocked user who waits for approval, because a real one needs an identity provider. */
const withUnapproved = (page: Page) => withUser(page, { needsApproval: true });
const withHeld = (page: Page) => withUser(page, { suspensionHeldAt: new Date().toISOString() });
const withUser = async (page: Page, fields: Record<string, unknown>) => {
  await page.route("**/api/v1/user?*", async (route) => {
    const answer = await route.fetch();
    const { users, ...rest } = await answer.json();
    const [first, ...others] = users;
    await route.fulfill({ response: answer, json: { ...rest, users: [{ ...first, ...fields }, ...others] } });
  });
  await page.reload();
  await settled(page);
};

/** Mocks a new invitation, because the server creates one only if its URL has a host name. */
const withInvitation = (page: Page) =>
  page.route("**/invitation", (route) =>
    route.fulfill({
      json: { link: "https://mesh.example.com/passkey/invite/fli_x_y", id: "1", expiration: new Date().toISOString() },
    }),
  );

/** Mocks a passkey, because creating one needs the device of a person. */
const withPasskey = (page: Page) =>
  page.route("**/api/v1/passkey?*", async (route) => {
    const { users } = await (await page.request.get(new URL("/admin/api/v1/user", page.url()).href)).json();
    const at = new Date().toISOString();
    const passkeys = [{ id: "1", user: users[0], syncable: true, createdAt: at, lastUsed: at }];
    await route.fulfill({ json: { passkeys } });
  });

const newKey = async (page: Page) => {
  await press(page, "Create key");
  await dialog(page).getByLabel("User", { exact: true }).selectOption({ index: 1 });
  await pressIn(page, "Create key");
  await page.getByRole("textbox", { name: "Your new pre-auth key" }).waitFor();
};
const withoutSaving = (page: Page) => pressIn(page, "Close without saving");

/** Layers on the page of a person's own devices. people.e2e.ts checks them, because an API key has no such devices. */
export const ownLayers: Record<string, Layer> = {
  "menu of a device": { of: "pages/my/Devices DeviceMenu", path: "/my", open: (page) => rowMenu(page) },
  "access of a device": {
    of: "pages/my/DeviceAccess DeviceAccess",
    path: "/my",
    open: (page) => rowMenu(page, "Show access"),
  },
};

/** Layers on the page of sessions. people.e2e.ts checks them, because there are none until somebody signs in. */
export const sessionLayers: Record<string, Layer> = {
  "menu of a session": {
    of: "pages/sessions/index SessionMenu",
    path: "/settings/sessions",
    open: (page) => rowMenu(page),
  },
  "revoke a session": {
    of: "pages/sessions/Revoke Revoke",
    path: "/settings/sessions",
    open: (page) => rowMenu(page, "Revoke"),
  },
};

export const layers: Record<string, Layer> = {
  "command palette": {
    of: "shell/Palette Palette",
    path: "/",
    open: (page) => page.keyboard.press("Control+k"),
    uncalled: true,
  },
  "keyboard shortcuts": {
    of: "shell/KeyHelp KeyHelp",
    path: "/",
    open: (page) => page.keyboard.press("?"),
    uncalled: true,
  },
  "session menu": {
    of: "shell/TopBar KeyMenu",
    path: "/",
    open: (page) => page.getByRole("button", { name: /Signed in with/ }).click(),
  },
  "main menu": {
    of: "shell/Rail RailSheet",
    path: "/",
    open: (page) => page.getByRole("button", { name: "Open menu" }).click(),
    only: "phone",
  },

  "filters of nodes": { of: "ui/table/menus FilterButton", path: "/nodes", open: (page) => press(page, /^Filter$/) },
  "filters of nodes by owner": {
    of: "ui/table/menus FilterButton",
    path: "/nodes",
    open: async (page) => {
      await press(page, /^Filter$/);
      await page.getByRole("menuitem", { name: "Owner" }).click();
    },
  },
  "columns of nodes": {
    of: "ui/table/menus ViewMenu",
    path: "/nodes",
    open: (page) => press(page, "View"),
    only: "wide",
  },
  "export of nodes": { of: "ui/table/menus ExportMenu", path: "/nodes", open: (page) => press(page, "Export") },
  "menu of a node": { of: "nodes/NodeMenu NodeMenu", path: "/nodes", open: (page) => rowMenu(page) },
  "rename a node": { of: "nodes/rename RenameDialog", path: "/nodes", open: (page) => rowMenu(page, "Rename") },
  "tags of a node": { of: "nodes/tags TagsDialog", path: "/nodes", open: (page) => rowMenu(page, "Edit tags") },
  "owner of a node": {
    of: "nodes/owner OwnerDialog",
    path: "/nodes?q=os:macos,windows,ios",
    open: (page) => rowMenu(page, "Change owner"),
  },
  "expiry of a node": {
    of: "nodes/expiry SetExpiryDialog",
    path: "/nodes?q=is:online",
    open: (page) => rowMenu(page, "Set key expiry"),
  },
  "expire a node": {
    of: "nodes/dialogs Ask",
    path: "/nodes?q=is:online",
    open: (page) => rowMenu(page, /^Expire key/),
  },
  "delete a node": { of: "nodes/dialogs Ask", path: "/nodes?q=is:router", open: (page) => rowMenu(page, "Delete") },
  "tags of several nodes": {
    of: "nodes/tags AddTagsDialog",
    path: "/nodes",
    open: (page) => withSelected(page, 3, "Edit tags"),
    spoils: true,
  },
  "owner of several nodes": {
    of: "nodes/owner OwnersDialog",
    path: "/nodes?q=os:macos,windows,ios",
    open: (page) => withSelected(page, 2, "Change owner"),
    spoils: true,
  },
  "delete several nodes": {
    of: "nodes/dialogs Ask",
    path: "/nodes",
    open: (page) => withSelected(page, 6, /^Delete/),
    spoils: true,
  },
  "node panel": { of: "pages/nodes/NodePanel NodePanel", path: "/nodes?node=7", open: settled, uncalled: true },
  "panel of a node that does not exist": {
    of: "pages/nodes/NodePanel NodePanel",
    path: "/nodes?node=987654",
    open: settled,
    uncalled: true,
  },
  "addresses of a node": {
    of: "nodes/addresses AddressesDialog",
    path: "/nodes/7",
    open: (page) => press(page, "Change addresses"),
  },
  "disable the expiry of a node": {
    of: "nodes/expiry NeverExpireDialog",
    path: "/nodes?q=is:expired",
    open: async (page) => {
      await openRow(page);
      await press(page, "Disable expiry");
    },
    close: async (page) => {
      await page.keyboard.press("Escape");
      await dialog(page).waitFor({ state: "detached" });
      await page.keyboard.press("Escape");
    },
  },

  "create a user": {
    of: "users/CreateUserDialog CreateUserDialog",
    path: "/users",
    open: (page) => press(page, /^Create user/),
  },
  "menu of a user": { of: "users/UserMenu UserMenu", path: "/users", open: (page) => rowMenu(page) },
  "rename a user": { of: "users/dialogs Rename", path: "/users", open: (page) => rowMenu(page, "Rename") },
  "change the role of a user": {
    of: "users/role RoleDialog",
    path: "/users",
    open: (page) => rowMenu(page, "Change role"),
  },
  "invite a user": {
    of: "keys/NewKeyDialog NewKeyDialog",
    path: "/users",
    open: (page) => rowMenu(page, "Invite with a passkey"),
  },
  "new invitation": {
    of: "users/invite InviteDialog",
    path: "/users",
    open: async (page) => {
      await withInvitation(page);
      await rowMenu(page, "Invite with a passkey");
      await pressIn(page, "Create link");
      await page.getByRole("textbox", { name: /^Invitation link for/ }).waitFor();
    },
    close: withoutSaving,
    spoils: true,
  },
  "delete a passkey": {
    of: "users/passkeys DeletePasskey",
    path: "/users",
    open: async (page) => {
      await withPasskey(page);
      await page.locator("main").getByRole("link", { name: "ana", exact: true }).click();
      await press(page, "Delete passkey 1");
    },
    spoils: true,
  },
  "suspend a user": {
    of: "users/access SuspendDialog",
    path: "/users?q=-is:empty",
    open: (page) => rowMenu(page, "Suspend"),
  },
  "restore a user": {
    of: "users/access RestoreDialog",
    path: "/users?q=is:suspended",
    open: (page) => rowMenu(page, "Restore"),
  },
  "approve a user": {
    of: "users/access ApproveDialog",
    path: "/users?q=is:unapproved",
    open: async (page) => {
      await withUnapproved(page);
      await rowMenu(page, "Approve");
    },
    spoils: true,
  },
  "keep the access of a user": {
    of: "users/several DecideDialog",
    path: "/users?q=is:held",
    open: async (page) => {
      await withHeld(page);
      await rowMenu(page, "Keep access");
    },
    spoils: true,
  },
  "delete a user with nodes": {
    of: "users/dialogs Delete",
    path: "/users?q=-is:empty",
    open: (page) => rowMenu(page, "Delete"),
  },
  "delete a user and move their nodes": {
    of: "users/dialogs Delete",
    path: "/users?q=-is:empty",
    open: async (page) => {
      await rowMenu(page, "Delete");
      await dialog(page).getByRole("radio", { name: /^Move/ }).check();
    },
  },

  "route panel": { of: "pages/routes/index RoutesList", path: "/routes", open: openRow },
  "disable several routes": {
    of: "routes/Question Question",
    path: "/routes?q=-is:waiting",
    open: (page) => withSelected(page, 2, /^Disable/),
  },

  "create a pre-auth key": {
    of: "keys/NewKeyDialog NewKeyDialog",
    path: "/keys",
    open: (page) => press(page, "Create key"),
  },
  "new pre-auth key": {
    of: "keys/CreateKeyDialog KeyReveal",
    path: "/keys",
    open: newKey,
    close: withoutSaving,
  },
  "leave without saving a secret": {
    of: "ui/leave AskToDrop",
    path: "/users",
    open: async (page) => {
      for (const key of ["g", "k"]) await page.keyboard.press(key);
      await newKey(page);
      await page.evaluate(() => history.back());
      await page.getByRole("dialog", { name: "Continue without saving the secret?" }).waitFor();
    },
    close: async (page) => {
      await page.keyboard.press("Escape");
      await withoutSaving(page);
    },
  },
  "menu of a pre-auth key": { of: "keys/actions KeyMenu", path: "/keys", open: (page) => rowMenu(page) },
  "expire a pre-auth key": { of: "keys/actions Ask", path: "/keys", open: (page) => rowMenu(page, "Expire") },
  "pre-auth key panel": { of: "pages/keys/index KeysList", path: "/keys", open: openRow },

  "approve a device": {
    of: "pages/requests/dialogs Approve",
    path: "/requests",
    open: (page) => press(page, "Approve new-laptop"),
  },
  "approve a device by its code": {
    of: "pages/requests/dialogs Approve",
    path: "/requests",
    open: (page) => press(page, "Approve by code"),
  },
  "reject a device": {
    of: "pages/requests/dialogs Reject",
    path: "/requests",
    open: (page) => press(page, "Reject new-laptop"),
  },
  "approve an SSH session": {
    of: "pages/requests/dialogs AnswerSSH",
    path: "/requests",
    open: (page) => withSession(page, "Approve"),
    spoils: true,
  },
  "reject an SSH session": {
    of: "pages/requests/dialogs AnswerSSH",
    path: "/requests",
    open: (page) => withSession(page, "Reject"),
    spoils: true,
  },

  "policy menu": { of: "pages/policy/Head Head", path: "/policy", open: (page) => press(page, "More") },
  "policy templates": {
    of: "pages/policy/Templates Templates",
    path: "/policy",
    open: async (page) => {
      await press(page, "More");
      await page.getByRole("menuitem", { name: "Templates" }).click();
    },
  },
  "effect of the policy": {
    of: "pages/policy/Workbench Workbench",
    path: "/policy",
    open: (page) => press(page, "Effect"),
    only: "phone",
  },
  "names for a rule": {
    of: "pages/policy/RuleForm Names",
    path: "/policy?panel=rule",
    open: (page) => page.getByRole("combobox").first().press("ArrowDown"),
    close: async (page) => {
      await page.keyboard.press("Escape");
      // On a phone, the form is in a panel.
      if (isPhone(page)) await page.keyboard.press("Escape");
    },
    uncalled: true,
  },
  "review of a policy": {
    of: "pages/policy/Review Review",
    path: "/policy",
    open: async (page) => {
      await withDraft(page, "current");
      await press(page, /^Review/);
    },
    spoils: true,
  },
  "merge of a policy": {
    of: "pages/policy/MergeDialog MergeDialog",
    path: "/policy",
    open: async (page) => {
      await withDraft(page, "1");
      await press(page, "Merge");
    },
    spoils: true,
  },
  "restore a version over a draft": {
    of: "pages/policy-versions/Version useNewDraft",
    path: "/policy/versions/2",
    open: async (page) => {
      await withDraft(page, "current");
      await press(page, /^Restore/);
    },
    spoils: true,
  },

  "names to check access": {
    of: "pages/access/Ask End",
    path: "/access",
    open: (page) => page.getByRole("combobox", { name: "From" }).press("ArrowDown"),
  },
  "nodes to draw paths of": {
    of: "pages/access/NodeChooser NodeChooser",
    path: "/access?view=flow",
    open: (page) => page.getByRole("combobox", { name: "Node" }).press("ArrowDown"),
    only: "wide",
  },
  "cell of the access map": {
    of: "pages/access/panels CellPanel",
    path: "/access?cell=tag:api%3Etag:db",
    open: settled,
    uncalled: true,
  },
  "rule of the access map": {
    of: "pages/access/panels RulePanel",
    path: "/access?cell=tag:api%3Etag:db",
    open: (page) => page.locator("[data-panel] li button").first().click(),
    uncalled: true,
  },

  "filters of the timeline": {
    of: "pages/timeline/Filters FilterMenu",
    path: "/timeline",
    open: (page) => press(page, /^Filter$/),
  },
  "period of the timeline": {
    of: "pages/timeline/RangeBar AskPeriod",
    path: "/timeline",
    open: (page) => press(page, /^Custom range/),
  },
  "event panel": {
    of: "pages/timeline/index TimelinePage",
    path: "/timeline?range=30d",
    open: (page) => page.locator("button[data-event]").first().click(),
  },

  "create an API key": {
    of: "keys/NewKeyDialog NewKeyDialog",
    path: "/settings/api-keys",
    open: (page) => press(page, "Create API key"),
  },
  "new API key": {
    of: "pages/api-keys/forms ApiKeyReveal",
    path: "/settings/api-keys",
    open: async (page) => {
      await press(page, "Create API key");
      await pressIn(page, "Create API key");
      await page.getByRole("textbox", { name: /^Your new API key/ }).waitFor();
    },
    close: withoutSaving,
  },
  "menu of an API key": {
    of: "pages/api-keys/KeyMenu KeyMenu",
    path: "/settings/api-keys",
    open: (page) => rowMenu(page),
  },
  "rotate an API key": {
    of: "pages/api-keys/dialogs Rotate",
    path: "/settings/api-keys",
    open: (page) => rowMenu(page, "Rotate"),
  },
  "revoke an API key": {
    of: "pages/api-keys/dialogs Revoke",
    path: "/settings/api-keys",
    open: (page) => rowMenu(page, "Revoke"),
  },
  "delete API keys": {
    of: "pages/api-keys/dialogs Remove",
    path: "/settings/api-keys?tab=all&q=-is:expired",
    // Two rows, because the first may be the session's own key, which bulk deletion skips.
    open: (page) => withSelected(page, 2, /^Delete/),
  },

  "leave changed DNS settings": {
    of: "ui/leave UnsavedGuard",
    path: "/settings/dns",
    open: async (page) => {
      await page.getByLabel("Search domains").fill("unsaved.example.com");
      await page.evaluate(() => document.getElementById("main")?.focus());
      for (const key of ["g", "n"]) await page.keyboard.press(key);
    },
    spoils: true,
    uncalled: true,
  },
  "reset DNS settings": {
    of: "pages/dns/index Reset",
    path: "/settings/dns",
    open: (page) => press(page, "Reset to configuration"),
  },

  "menu of a relay": {
    of: "pages/cluster/Relays Actions",
    path: "/settings/cluster",
    open: (page) => rowMenu(page),
  },
  "drain a relay": {
    of: "pages/cluster/Relays Drain",
    path: "/settings/cluster",
    open: (page) => rowMenu(page, "Drain"),
  },
  "remove a relay": {
    of: "pages/cluster/Relays Remove",
    path: "/settings/cluster",
    open: (page) => rowMenu(page, "Remove"),
  },

  "create a webhook": {
    of: "pages/webhooks/dialogs FormDialog",
    path: "/settings/webhooks",
    open: (page) => press(page, "Create webhook"),
  },
  "menu of a webhook": { of: "pages/webhooks/index Card", path: "/settings/webhooks", open: (page) => rowMenu(page) },
  "edit a webhook": {
    of: "pages/webhooks/dialogs FormDialog",
    path: "/settings/webhooks",
    open: (page) => rowMenu(page, "Edit"),
  },
  "rotate the secret of a webhook": {
    of: "pages/webhooks/dialogs Rotate",
    path: "/settings/webhooks",
    open: (page) => rowMenu(page, /^Rotate/),
  },
  "new secret of a webhook": {
    of: "pages/webhooks/dialogs Secret",
    path: "/settings/webhooks",
    open: async (page) => {
      await rowMenu(page, /^Rotate/);
      await pressIn(page, /^Rotate/);
      await page.getByRole("textbox", { name: "Your webhook secret" }).waitFor();
    },
    close: withoutSaving,
  },
  "delete a webhook": {
    of: "pages/webhooks/dialogs Remove",
    path: "/settings/webhooks",
    open: (page) => rowMenu(page, "Delete"),
  },
};
