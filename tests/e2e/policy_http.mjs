// Tests policy-http with an external policy decision point. It is queried after the name of a call
// was resolved, from a compartment that can reach only the decision point. Any fault rejects the
// call. A call that a rule blocks remains blocked, whatever the decision point returns.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, build, fake, run, runProgram, sanitized, show, sleep, test, until } from './lib.mjs';
import { ask, statusOf } from './status.mjs';
import { startDecisionPoint } from '../fixtures/decision_point.mjs';

const telemetryPlugin = join(build, 'tests/judges/test-telemetry.so');
const refused = 3;

async function point(t, options = {}) {
  const server = await startDecisionPoint(options);
  t.defer(() => server.stop());
  return server;
}
// Configures the decision point as a policy after the rules of the profile, as in docs/policy.md.
async function asked(t, server, { http = {}, security, env, ...more } = {}) {
  const gateway = await t.gateway({
    mcpServers: { local: fake('--tool', 'a', '--tool', 'b') },
    policies: {
      rules: { plugin: 'policy-rules' },
      point: { plugin: 'policy-http', rules: false, url: server.url, timeout_ms: 3000, ...http },
    },
    telemetry: { book: { plugin: telemetryPlugin } },
    ...(security ? { security } : {}),
    ...more,
  }, { env });
  return { gateway, client: await t.http(gateway) };
}
const call = (client, args = {}, tool = 'local__a') =>
  client.tool(tool, args).then((result) => ({ result }), (error) => ({ error }));
const compartment = async (gateway, name) => (await statusOf(gateway)).compartments.find((one) => one.name === name);
function records(gateway) {
  const file = readdirSync(gateway.dir, { recursive: true }).find((name) => name.endsWith('records.jsonl'));
  if (file === undefined) return [];
  return readFileSync(join(gateway.dir, file), 'utf8').trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
}

function selfSigned(t, name) {
  const [key, cert] = [t.path(`${name}.key`), t.path(`${name}.pem`)];
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
    '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert,
  ], { stdio: 'ignore' });
  return { file: cert, key: readFileSync(key), cert: readFileSync(cert) };
}

test('the decision point\'s response decides calls, and the request has all documented members', async (t) => {
  const server = await point(t, {
    decide: ({ preview }) => {
      const { wish } = preview.arguments;
      if (wish === 'rewrite') return { decision: 'rewrite', rule_id: 'mask', rewrite_target: 'arguments', rewrite_value: { masked: true } };
      return { decision: wish, rule_id: 'point-rule', reason: 'as the point says' };
    },
  });
  const { client, gateway } = await asked(t, server, { http: { headers: { Authorization: 'Bearer canary-credential' } } });
  assert.deepEqual((await call(client, { wish: 'allow', n: 1 })).result.echo, { wish: 'allow', n: 1 });
  assert.deepEqual((await call(client, { wish: 'rewrite' })).result.echo, { masked: true });
  assert.match((await call(client, { wish: 'block' })).error.message, /blocked by policy \(point-rule\): as the point says/);
  assert.match((await call(client, { wish: 'ask' })).error.message, /point-rule.*approval/);
  const [first] = server.questions;
  assert.equal(first.spec_version, 'policy-hook/v0');
  assert.equal(first.on, 'mcp.request');
  assert.deepEqual(
    { ...first.subject, process_name: undefined, peer: undefined, transport: undefined },
    { type: 'mcp', method: 'tools/call', server_name: 'local', tool_name: 'a', principal: 'local', process_name: undefined, peer: undefined, transport: undefined },
  );
  assert.match(first.hashes.arguments, /^sha256:[0-9a-f]{64}$/);
  assert.match(first.decision_id, /^[0-9a-f]{32}$/);
  assert.equal(server.requests[0].headers.authorization, 'Bearer canary-credential');
  await gateway.stop();
  assert.doesNotMatch(gateway.stderr(), /canary-credential/);
});

test('a call that rules block is not sent to the decision point', async (t) => {
  const server = await point(t);
  const { client, gateway } = await asked(t, server, {
    security: { rules: { mcp: { no_b: { on: 'mcp.request', if: 'mcp.request.tool_name == "b"', decision: 'block', reason: 'never' } } } },
  });
  assert.match((await call(client, {}, 'local__b')).error.message, /no_b.*never/);
  assert.equal(server.questions.length, 0);
  assert.ok((await call(client, {})).result);
  assert.equal(server.questions.length, 1);
  await until('both are recorded', () => {
    const all = records(gateway);
    return all.some((one) => one.outcome === refused && /no_b/.test(one.rule)) && all.some((one) => one.name === 'a' && one.outcome === 1);
  });
});

test('a response is cached only for the same request and until it expires', async (t) => {
  const server = await point(t, { decide: () => ({ decision: 'allow', ttl_ms: 600_000 }) });
  const { client, gateway } = await asked(t, server);
  for (let i = 0; i < 3; ++i) assert.ok((await call(client, { n: 1 })).result);
  assert.equal(server.questions.length, 1);
  assert.ok((await call(client, { n: 2 })).result);
  assert.ok((await call(client, { n: 1 }, 'local__b')).result);
  assert.equal(server.questions.length, 3);
  const other = await t.http(gateway);
  assert.ok((await call(other, { n: 1 })).result);
  assert.equal(server.questions.length, 4, 'another session is another question');
  server.mode = 'hang';
  assert.ok((await call(client, { n: 1 })).result, 'known');
  assert.match((await call(client, { n: 3 })).error.message, /policy-failed/);
});

for (const mode of ['hang', 'stall', 'drip', 'garbage', 'html', 'empty', '500', '302', 'huge', 'reset']) {
  test(`a decision point with ${mode} rejects calls, which is recorded, and the endpoint continues`, async (t) => {
    const server = await point(t);
    const { client, gateway } = await asked(t, server);
    assert.ok((await call(client, { n: 0 })).result);
    server.mode = mode;
    const { error, result } = await call(client, { n: 1 });
    assert.match(error?.message ?? show(result), /MCP request blocked by policy \(policy-failed\): the decision point http:\/\/127\.0\.0\.1:\d+: /);
    assert.ok(server.requests.every(({ url }) => url === '/v1/policy/decision'), 'nothing is followed');
    server.mode = 'ok';
    const after = await call(client, { n: 1 });
    assert.ok(after.result, `a failure is not kept: ${after.error?.message}`);
    await until('the rejection is recorded', () => records(gateway).find((one) => one.outcome === refused && one.rule === 'policy-failed'));
    for (const name of ['endpoint', 'egress.policy.point']) assert.equal((await compartment(gateway, name)).restarts, 0, name);
  });
}

test('if no decision point is listening, every call is rejected', async (t) => {
  const server = await point(t);
  const { client } = await asked(t, server);
  await server.stop();
  assert.match((await call(client)).error.message, /policy-failed.*decision point/);
});

test('HTTPS accepts only a known certificate', async (t) => {
  const good = selfSigned(t, 'good');
  const server = await point(t, { tls: good });
  const { client } = await asked(t, server, { env: { SSL_CERT_FILE: good.file } });
  assert.ok((await call(client)).result);
  const stranger = await point(t, { tls: selfSigned(t, 'stranger') });
  const { client: wary } = await asked(t, stranger, { env: { SSL_CERT_FILE: good.file } });
  assert.match((await call(wary)).error.message, /policy-failed.*certificate/i);
  assert.equal(stranger.requests.length, 0);
});

test('a Unix socket works without network access', async (t) => {
  const path = t.path('point.sock');
  const server = await point(t, { path });
  const { client, gateway } = await asked(t, { url: 'http://localhost/v1/policy/decision' }, { http: { socket: path } });
  for (let n = 0; n < 3; ++n) assert.ok((await call(client, { n })).result);
  assert.equal(server.questions.length, 3);
  const { in_force: parts } = await compartment(gateway, 'egress.policy.point');
  assert.ok(parts.some((part) => /network-namespace|landlock-tcp/.test(part)), show(parts));
  await server.stop();
  assert.match((await call(client, { n: 9 })).error.message, /policy-failed.*unix:/);
});

test('a reload of its configuration rejects no call', async (t) => {
  const path = t.path('point.sock');
  await point(t, { path });
  const { client, gateway } = await asked(t, { url: 'http://localhost/v1/policy/decision' }, { http: { socket: path } });
  const clients = [client, ...await Promise.all(Array.from({ length: 7 }, () => t.http(gateway)))];
  let calls = 0, over = false;
  const failures = [];
  const loads = clients.map(async (one, i) => {
    while (!over) {
      const { error } = await call(one, { i, n: ++calls });
      if (error) failures.push(error.message);
    }
  });
  for (let i = 0; i < 6; ++i) {
    const profile = JSON.parse(readFileSync(gateway.config, 'utf8'));
    profile.policies.point.timeout_ms = 3001 + i;
    writeFileSync(gateway.config, JSON.stringify(profile));
    const { pid } = await compartment(gateway, 'egress.policy.point');
    const done = await ask(gateway, 'POST', '/reload-config');
    assert.equal(done.status, 200, show(done));
    assert.notEqual((await compartment(gateway, 'egress.policy.point')).pid, pid);
    const before = calls;
    await until('calls are made', () => calls > before + 20);
  }
  over = true;
  await Promise.all(loads);
  assert.deepEqual(failures.slice(0, 5), []);
});

test('in Open Policy Agent\'s format, undefined is a denial', async (t) => {
  const server = await point(t, {
    opa: true,
    decide: ({ subject, preview }) => {
      if (subject.tool_name === 'b') return undefined;
      return preview.arguments.n === 1 ? true : { decision: 'block', rule_id: 'rego', reason: 'no' };
    },
  });
  const { client } = await asked(t, server, { http: { style: 'opa' } });
  assert.ok((await call(client, { n: 1 })).result);
  assert.match((await call(client, { n: 2 })).error.message, /\(rego\): no/);
  assert.match((await call(client, { n: 1 }, 'local__b')).error.message, /undefined/);
});

test('results are evaluated, and withheld results do not reach the client', async (t) => {
  const server = await point(t, {
    decide: ({ on, preview }) => (on === 'mcp.response' && /withhold/.test(JSON.stringify(preview.result)) ? { decision: 'block', rule_id: 'out' } : { decision: 'allow' }),
  });
  const { client } = await asked(t, server, { http: { on: ['mcp.request', 'mcp.response'] } });
  assert.ok((await call(client, { say: 'this' })).result);
  assert.match((await call(client, { say: 'withhold' })).error.message, /MCP response blocked by policy \(out\)/);
});

test('if its compartment is killed, waiting calls are rejected and it is restarted', async (t) => {
  const server = await point(t);
  const { client, gateway } = await asked(t, server, { http: { timeout_ms: 20_000 } });
  assert.ok((await call(client)).result);
  const { pid } = await compartment(gateway, 'egress.policy.point');
  server.mode = 'hang';
  const waiting = call(client, { n: 1 });
  await until('it is asked', () => server.questions.length === 2);
  process.kill(pid, 'SIGKILL');
  assert.match((await waiting).error.message, /policy-failed.*egress\.policy\.point/);
  server.mode = 'ok';
  await until('it decides again', async () => (await call(client, { n: 2 })).result);
  assert.equal((await compartment(gateway, 'endpoint')).restarts, 0);
});

test('the endpoint has no network access, and the egress compartment has no files or programs', async (t) => {
  const { gateway, client } = await asked(t, await point(t));
  assert.ok((await call(client)).result);
  const one = await compartment(gateway, 'egress.policy.point');
  assert.ok(sanitized || one.in_force.includes('seccomp'), show(one.in_force));
  assert.ok(one.in_force.includes('landlock-files') || one.missing.includes('landlock-files'), show(one));
  const maps = (pid) => readFileSync(`/proc/${pid}/maps`, 'utf8');
  assert.match(maps(one.pid), /libcurl/);
  assert.doesNotMatch(maps((await compartment(gateway, 'endpoint')).pid), /libcurl/);
});

test('calls are also decided with --single-process', async (t) => {
  const server = await point(t, { decide: ({ preview }) => ({ decision: preview.arguments.wish }) });
  const gateway = await t.gateway({
    mcpServers: { local: fake('--tool', 'a') },
    policies: { point: { plugin: 'policy-http', url: server.url } },
  }, { args: ['--single-process'] });
  const client = await t.http(gateway);
  assert.ok((await call(client, { wish: 'allow' })).result);
  assert.ok((await call(client, { wish: 'block' })).error);
});

test('invalid configuration is rejected, and the error names the key', async (t) => {
  const start = (point_, more = {}) => runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}'], {
    profile: { mcpServers: {}, policies: { point: { plugin: 'policy-http', ...point_ } }, ...more },
  });
  for (const [keys, expected] of [
    [{}, /url: the address/],
    [{ url: 'http://pdp.example/v1' }, /url: http:\/\/ is allowed only for this machine/],
    [{ url: 'https://user:canary@pdp.example/v1' }, /url: contains a user name/],
    [{ url: 'https://pdp.example/v1', timeout_ms: 0 }, /timeout_ms/],
    [{ url: 'https://pdp.example/v1', tll: 1 }, /tll: unknown key/],
  ]) {
    await sleep(1); // decision points of other tests are in this process
    const { code, stderr } = start(keys);
    assert.notEqual(code, 0, show(keys));
    assert.match(stderr, expected);
    assert.doesNotMatch(stderr, /canary/);
  }
  const ruled = start({ url: 'https://pdp.example/v1' }, { security: { default: 'block' } });
  assert.notEqual(ruled.code, 0);
  assert.match(ruled.stderr, /rules = false/);
  const alone = start({ url: 'https://pdp.example/v1', rules: false }, { security: { default: 'block' } });
  assert.notEqual(alone.code, 0);
  assert.match(alone.stderr, /no policy plugin evaluates them/);
});

await run();
