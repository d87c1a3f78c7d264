// Attempts of one network address to evict the sessions of other addresses. The tests run in a
// private network in which this machine has several addresses outside 127.0.0.0/8, because all
// clients at loopback addresses count as one peer.
import { spawnSync } from 'node:child_process';
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { assert, fake, program, run, test } from '../e2e/lib.mjs';
import { statusOf } from '../e2e/status.mjs';

const evil = '10.77.0.2', others = ['10.77.0.3', '10.77.0.4'];

// Runs this file again in a private network. Returns if no private network can be created. An
// ordinary user needs a user namespace, in which files of root belong to user 65534. The gateway then
// rejects plugins that belong to root.
function enterOwnNetwork() {
  if (process.env.PEERS_NETWORK !== undefined) return;
  const set = `ip link set lo up && ${[evil, ...others].map((address) => `ip addr add ${address}/32 dev lo`).join(' && ')} && exec "$@"`;
  const own = (words, stdio) => spawnSync('unshare', [...(process.getuid() === 0 ? [] : ['-Ur']), '-n', 'sh', '-c', set, 'sh', ...words],
    { stdio, env: { ...process.env, PEERS_NETWORK: 'own' } });
  if (own(['sh', '-c', 'test "$(stat -c %u "$1")" = 0', 'sh', program], 'ignore').status !== 0) return;
  process.exit(own([process.execPath, '--no-warnings', fileURLToPath(import.meta.url), ...process.argv.slice(2)], 'inherit').status ?? 1);
}
enterOwnNetwork();

// Sends a message from this address. Resolves with {status, session, text}.
function post(gateway, from, body, session) {
  return new Promise((resolve, reject) => {
    const request = http.request({
      host: '127.0.0.1', port: gateway.port, path: '/mcp', method: 'POST', agent: false, localAddress: from, timeout: 5000,
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...(session && { 'mcp-session-id': session }) },
    }, (res) => {
      let text = '';
      res.on('data', (data) => (text += data)).on('end', () => resolve({ status: res.statusCode, session: res.headers['mcp-session-id'], text })).on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error('no answer'))).on('error', reject).end(body);
  });
}
const initialize = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}';
async function begin(gateway, from) {
  const opened = await post(gateway, from, initialize);
  assert.equal(opened.status, 200);
  assert.equal((await post(gateway, from, '{"jsonrpc":"2.0","method":"notifications/initialized"}', opened.session)).status, 202);
  return { from, session: opened.session };
}
const call = async (gateway, { from, session }) =>
  assert.match((await post(gateway, from, '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a__x","arguments":{}}}', session)).text, /fake\/x/);
const evictions = async (gateway) => {
  const { counters } = await statusOf(gateway);
  return Object.entries(counters).filter(([name]) => name.endsWith('http.sessions_evicted')).reduce((sum, [, n]) => sum + n, 0);
};

// Opens three sessions for each of `quiet`, fills the table from `loud`, and then calls a tool in
// the first sessions. Returns how many of them had been evicted. The table is full, so a call that
// restores an evicted session evicts another one.
async function evictedOf(gateway, quiet, loud) {
  const sessions = [];
  for (let i = 0; i < 3; ++i) for (const from of quiet) sessions.push(await begin(gateway, from));
  for (let i = 0; i < 60; ++i) await begin(gateway, loud);
  const before = await evictions(gateway);
  assert.ok(before >= 40, `${before} evictions`);
  for (const each of sessions) await call(gateway, each);
  return (await evictions(gateway)) - before;
}

for (const [mode, args] of [['in compartments', []], ['in one process', ['--single-process']]]) {
  const profile = { limits: { sessions: 16 }, mcpServers: { a: fake('--tool', 'x') } };
  test(`red team: an address with many sessions evicts no session of another address, ${mode}`, async (t) => {
    if (process.env.PEERS_NETWORK !== 'own') t.skip('this user cannot run the gateway in a private network');
    assert.equal(await evictedOf(await t.gateway(profile, { args }), others, evil), 0);
  });
  // These show that the sessions would be evicted if all of them belonged to one peer.
  test(`red team: sessions of one address are evicted in the order of their use, ${mode}`, async (t) => {
    if (process.env.PEERS_NETWORK !== 'own') t.skip('this user cannot run the gateway in a private network');
    assert.equal(await evictedOf(await t.gateway(profile, { args }), [evil, evil], evil), 6);
  });
  test(`red team: all loopback addresses are one peer, ${mode}`, async (t) => {
    assert.equal(await evictedOf(await t.gateway(profile, { args }), ['127.0.0.2', '127.0.0.3'], '127.0.0.4'), 6);
  });
}

await run();
