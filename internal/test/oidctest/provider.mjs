// A certified OpenID Connect provider for tests. Everyone may sign in, with any password:
// the account is the name that was typed. Only eve has an address in another domain. A request to
// /test/disable/NAME or /test/enable/NAME disables or enables an account, and one to /test/logout/NAME tells the client that
// the person has signed out.
import Provider from "oidc-provider";

const [port, callback] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

const disabled = new Set();
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "mesh",
      client_secret: "client-secret-of-the-test",
      redirect_uris: [callback],
      backchannel_logout_uri: callback.replace(/callback$/, "backchannel-logout"),
      grant_types: ["authorization_code", "refresh_token"],
    },
  ],
  pkce: { required: () => true },
  scopes: ["openid", "profile", "email", "groups", "offline_access"],
  claims: {
    openid: ["sub"],
    profile: ["name", "preferred_username"],
    email: ["email", "email_verified"],
    groups: ["groups"],
  },
  features: { devInteractions: { enabled: true }, backchannelLogout: { enabled: true } },
  // Without the dispatcher, which refuses addresses on loopback.
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
  findAccount: (_, id) => disabled.has(id) ? undefined : ({
    accountId: id,
    claims: () => ({
      sub: id,
      name: `${id} Example`,
      preferred_username: id,
      email: id === "eve" ? "eve@example.org" : `${id}@example.com`,
      email_verified: true,
      groups: ["staff"],
    }),
  }),
});

provider.use(async (ctx, next) => {
  const [, test, verb, name] = ctx.path.split("/");
  if (test !== "test") return next();
  if (verb === "disable") disabled.add(name);
  if (verb === "enable") disabled.delete(name);
  if (verb === "logout") await (await provider.Client.find("mesh")).backchannelLogout(name);
  ctx.body = "done";
});

provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
