// An OpenID Connect provider that signs in every account of a file, with any password.
// Arguments: the folder of its package, its port, its clients as JSON, and the file of accounts, read at each request.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [home, port, clients, accounts] = process.argv.slice(2);
const module = pathToFileURL(`${home}/node_modules/oidc-provider/lib/index.js`);
const { Provider } = await import(module);

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: JSON.parse(clients),
  claims: { openid: ['sub', 'role', 'xregistry_groups'], profile: ['name'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['of the tests'] },
  features: { deviceFlow: { enabled: true } },
  pkce: { required: () => true },
  issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
  findAccount(ctx, id) {
    const claims = JSON.parse(readFileSync(accounts, 'utf8'))[id];
    return claims && { accountId: id, claims: async () => ({ sub: id, ...claims }) };
  },
});
provider.listen(Number(port), '127.0.0.1');
