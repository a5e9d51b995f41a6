// A certified OpenID Connect provider for tests. Everyone may sign in, with any password:
// the account is the name that was typed. Only eve has an address in another domain.
import Provider from "oidc-provider";

const [port, callback] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "mesh",
      client_secret: "client-secret-of-the-test",
      redirect_uris: [callback],
      grant_types: ["authorization_code"],
    },
  ],
  pkce: { required: () => true },
  scopes: ["openid", "profile", "email", "groups"],
  claims: {
    openid: ["sub"],
    profile: ["name", "preferred_username"],
    email: ["email", "email_verified"],
    groups: ["groups"],
  },
  features: { devInteractions: { enabled: true } },
  findAccount: (_, id) => ({
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

provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
