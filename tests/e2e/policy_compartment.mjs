// Tests third-party policy and telemetry plugins in private compartments and in the endpoint.
// Whatever these plugins do, each call must be decided or rejected and must be recorded, and the
// endpoint must keep running.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { assert, build, fake, run, runProgram, sanitized, show, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const policyPlugin = join(build, 'tests/judges/test-policy.so');
const telemetryPlugin = join(build, 'tests/judges/test-telemetry.so');
const refused = 3;
const ok = 1;

async function judged(t, { policy = {}, telemetry = {}, tools = ['a'], limits = {} } = {}) {
  const gateway = await t.gateway({
    mcpServers: { local: fake(...tools.flatMap((tool) => ['--tool', tool])) },
    policies: { judge: { plugin: policyPlugin, ...policy } },
    telemetry: { book: { plugin: telemetryPlugin, ...telemetry } },
    limits: { policy_timeout_ms: 3000, ...limits },
  });
  return { gateway, client: await t.http(gateway) };
}
const compartment = async (gateway, name) => (await statusOf(gateway)).compartments.find((one) => one.name === name);
const runs = (gateway, name, not) =>
  until(`${name} runs`, async () => {
    const one = await compartment(gateway, name);
    return one?.state === 'running' && one.pid !== not && one;
  });
const call = (client, args, tool = 'local__a') => client.tool(tool, args).then((result) => ({ result }), (error) => ({ error }));
// Waits until the policy is running and decides calls.
const decides = (client) => until('calls are decided', async () => (await call(client, { judge: 'allow' })).result);

function records(gateway) {
  const file = readdirSync(gateway.dir, { recursive: true }).find((name) => name.endsWith('records.jsonl'));
  if (file === undefined) return [];
  return readFileSync(join(gateway.dir, file), 'utf8').trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
}
const recorded = (gateway, what, matches) => until(`${what} is recorded`, () => records(gateway).find(matches));

for (const where of ['own', 'endpoint']) {
  const places = { policy: { compartment: where }, telemetry: {} };

  test(`calls and results are evaluated (policy: ${where})`, async (t) => {
    const { gateway, client } = await judged(t, places);
    const names = (await statusOf(gateway)).compartments.map((one) => one.name);
    assert.equal(names.includes('policy.judge'), where === 'own', show(names));
    assert.ok(names.includes('telemetry.book'), show(names));
    const allowed = await call(client, { judge: 'allow', n: 1 });
    assert.deepEqual(allowed.result.echo, { judge: 'allow', n: 1 });
    const rewritten = await call(client, { judge: 'rewrite' });
    assert.deepEqual(rewritten.result.echo, { written: 'by the policy' });
    const blocked = await call(client, { judge: 'block' });
    assert.match(blocked.error.message, /MCP request blocked by policy \(test-rule\): as the call says/);
    const later = await Promise.all(['later', 'later-block', 'later'].map((judge) => call(client, { judge })));
    assert.ok(later[0].result && later[2].result, show(later));
    assert.match(later[1].error.message, /test-rule/);

    assert.deepEqual((await call(client, { result: 'rewrite' })).result, { written: 'by the policy' });
    assert.match((await call(client, { result: 'block' })).error.message, /MCP response blocked by policy \(test-rule\)/);
    assert.ok((await call(client, { result: 'later' })).result);
    assert.match((await call(client, { result: 'later-block' })).error.message, /MCP response blocked/);
    await recorded(gateway, 'the refusal', (one) => one.outcome === refused && one.rule === 'test-rule' && one.server === 'local');
    await recorded(gateway, 'a call', (one) => one.outcome === ok && one.name === 'a');
  });

  test(`a policy that throws, fails or returns an invalid verdict rejects the call (policy: ${where})`, async (t) => {
    const { gateway, client } = await judged(t, places);
    await decides(client);
    for (const wish of ['throw', 'error', 'nonsense', 'no-json', 'never']) {
      const request = await call(client, { judge: wish });
      assert.match(request.error?.message ?? show(request), /MCP request blocked by policy \(policy-(failed|timeout)\)/, wish);
      const response = await call(client, { result: wish });
      assert.match(response.error?.message ?? show(response), /MCP response blocked by policy \(policy-(failed|timeout)\)/, wish);
      assert.ok((await call(client, { judge: 'allow' })).result, `after ${wish}`);
    }
    await recorded(gateway, 'a failure', (one) => one.outcome === refused && one.rule === 'policy-failed');
    await recorded(gateway, 'a time-out', (one) => one.outcome === refused && one.rule === 'policy-timeout');
    if (where === 'own') assert.equal((await compartment(gateway, 'policy.judge')).restarts, 0);
    assert.equal((await compartment(gateway, 'endpoint')).restarts, 0);
  });

  test(`lists are filtered per item, immediately and later (policy: ${where})`, async (t) => {
    const { client } = await judged(t, {
      policy: { ...places.policy, lists: 'filter' },
      tools: ['a', 'hidden1', 'later1', 'throws1', 'never1'],
    });
    await decides(client);
    assert.deepEqual((await client.toolNames()).sort(), ['local__a', 'local__later1']);
    await call(client, { judge: 'changed' });
    assert.deepEqual((await client.toolNames()).sort(), ['local__a', 'local__later1']);
  });
}

test('if a policy crashes, pending calls are rejected immediately and later calls are decided again', async (t) => {
  const { gateway, client } = await judged(t, { limits: { policy_timeout_ms: 30_000 } });
  await decides(client);
  const before = await runs(gateway, 'policy.judge');
  const waiting = call(client, { result: 'never' });
  const pending = Array.from({ length: 5 }, () => call(client, { judge: 'never' }));
  await until('they are in flight', async () => (await statusOf(gateway)).in_flight === 6);
  await decides(client);  // all earlier calls have been evaluated
  const crash = await call(client, { judge: 'crash' });
  for (const outcome of [crash, ...(await Promise.all(pending))]) {
    assert.match(outcome.error?.message ?? show(outcome), /blocked by policy \(policy-failed\).*policy\.judge/);
  }
  assert.match((await waiting).error.message, /MCP response blocked by policy \(policy-failed\)/);
  await runs(gateway, 'policy.judge', before.pid);
  await decides(client);
  assert.match((await call(client, { result: 'crash' })).error.message, /MCP response blocked/);
  await decides(client);
  await recorded(gateway, 'the crash', (one) => one.outcome === refused && one.rule === 'policy-failed');
  assert.equal((await compartment(gateway, 'endpoint')).restarts, 0);
});

test('while the policy is down, calls are rejected and lists are empty; then both recover', async (t) => {
  const { gateway, client } = await judged(t, { policy: { lists: 'filter' } });
  await decides(client);
  assert.deepEqual(await client.toolNames(), ['local__a']);
  const { pid } = await runs(gateway, 'policy.judge');
  process.kill(pid, 'SIGSTOP');
  t.defer(() => {
    try {
      process.kill(pid, 'SIGCONT');
    } catch { /* the process has ended */ }
  });
  const hung = await call(client, { judge: 'allow' });
  assert.match(hung.error.message, /policy-timeout/);
  await runs(gateway, 'policy.judge', pid);
  await decides(client);
  assert.deepEqual(await client.toolNames(), ['local__a']);
});

test('an unresponsive policy is killed after its timeout, and other calls continue', async (t) => {
  const { gateway, client } = await judged(t);
  await decides(client);
  const before = await runs(gateway, 'policy.judge');
  const hung = call(client, { judge: 'hang' });
  const behind = call(client, { judge: 'allow' });
  assert.ok(Array.isArray(await client.toolNames()), 'lists are not filtered, and do not wait');
  assert.match((await hung).error.message, /MCP request blocked by policy \(policy-timeout\)/);
  assert.match((await behind).error.message, /MCP request blocked by policy/);
  await runs(gateway, 'policy.judge', before.pid);
  await decides(client);
  assert.match((await call(client, { result: 'hang' })).error.message, /MCP response blocked by policy \(policy-timeout\)/);
  await decides(client);
  assert.equal((await compartment(gateway, 'endpoint')).restarts, 0);
});

test('a policy that writes invalid data to its sockets is killed and restarted', async (t) => {
  const { gateway, client } = await judged(t);
  await decides(client);
  const before = await runs(gateway, 'policy.judge');
  assert.match((await call(client, { judge: 'scribble' })).error.message, /MCP request blocked by policy \(policy-failed\)/);
  await runs(gateway, 'policy.judge', before.pid);
  await decides(client);
  assert.equal((await compartment(gateway, 'endpoint')).restarts, 0);
});

test('calls of a restarted endpoint are evaluated', async (t) => {
  const { gateway, client } = await judged(t);
  await decides(client);
  const { pid } = await runs(gateway, 'endpoint');
  const lost = call(client, { judge: 'never' });
  await until('it is in flight', async () => (await statusOf(gateway)).in_flight === 1);
  process.kill(pid, 'SIGKILL');
  assert.ok((await lost).error);
  await runs(gateway, 'endpoint', pid);
  await decides(client);
  assert.match((await call(client, { judge: 'block' })).error.message, /test-rule/);
});

test('a missing policy rejects every call', async (t) => {
  const { gateway, client } = await judged(t, { policy: { required: false, sha256: '0'.repeat(64) } });
  const outcome = await call(client, { judge: 'allow' });
  assert.match(outcome.error?.message ?? show(outcome), /MCP request blocked by policy \(policy-failed\)/);
  const plugin = (await statusOf(gateway)).plugins.find((one) => one.id === 'judge');
  assert.match(plugin.state, /^failed: .*policy\.judge/);
});

test('a missing required policy stops the start', (t) => {
  const outcome = runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}'], {
    profile: { mcpServers: {}, policies: { judge: { plugin: policyPlugin, sha256: '0'.repeat(64) } } },
  });
  assert.equal(outcome.code, 1);
  assert.match(outcome.stderr, /test-policy/);
});

test('every call is recorded once, even if telemetry crashes', async (t) => {
  const { gateway, client } = await judged(t, { tools: ['a', 'crash-telemetry', 'hold-telemetry'] });
  await decides(client);
  const before = await runs(gateway, 'telemetry.book');
  const calls = 200;
  const batch = (n) => Promise.all(Array.from({ length: n }, (_, i) => call(client, { i })));
  await batch(calls / 2);
  await client.tool('local__crash-telemetry', {});
  await batch(calls / 2);
  await runs(gateway, 'telemetry.book', before.pid);
  await client.tool('local__hold-telemetry', {});
  assert.ok((await call(client, { last: true })).result, 'calls do not wait for it');
  await until('all calls are recorded', () => {
    const numbers = new Set(records(gateway).filter((one) => one.name === 'a').map((one) => one.number));
    return numbers.size >= calls + 2;
  });
  const crashes = records(gateway).filter((one) => one.name === 'crash-telemetry');
  // The record was received but not acknowledged, so it is sent again with the same number.
  assert.equal(crashes.length, 2, show(crashes));
  assert.equal(new Set(crashes.map((one) => one.number)).size, 1);
  assert.equal((await compartment(gateway, 'endpoint')).restarts, 0);
});

test('records in transit at shutdown are stored', async (t) => {
  const { gateway, client } = await judged(t);
  await decides(client);
  const before = records(gateway).length;
  await Promise.all(Array.from({ length: 50 }, (_, i) => call(client, { i })));
  await gateway.stop();
  assert.ok(records(gateway).length >= before + 50, `${records(gateway).length}`);
});

// A compromised plugin must not overload the supervisor or its disk.
test('signatures for a telemetry plugin are limited', async (t) => {
  const { gateway, client } = await judged(t, { tools: ['a', 'sign-telemetry'] });
  await decides(client);
  await client.tool('local__sign-telemetry', {});
  const all = await recorded(gateway, 'how many it got', (one) => one.signed !== undefined);
  assert.ok(all.signed >= 200, show(all));  // the burst that the budget permits
  assert.equal(all.signed + all.refused, 2000, show(all));
  assert.ok(all.refused > 0, show(all));
  assert.ok((await call(client, {})).result, 'calls continue');
  assert.equal((await compartment(gateway, 'telemetry.book')).restarts, 0);
});

test('a policy has no network, files or programs, and telemetry has its directory', async (t) => {
  const { gateway } = await judged(t);
  for (const name of ['policy.judge', 'telemetry.book']) {
    const one = await runs(gateway, name);
    assert.ok(one.in_force.some((part) => /network/.test(part)), show(one.in_force));
    assert.ok(sanitized || one.in_force.includes('seccomp'), show(one.in_force));
  }
});

test('an invalid compartment name is rejected', async (t) => {
  const outcome = runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}'], {
    profile: { mcpServers: {}, policies: { judge: { plugin: policyPlugin, compartment: 'web', grants: ['control'] } } },
  });
  assert.notEqual(outcome.code, 0);
  assert.match(outcome.stderr, /"own" or "endpoint"/);
  assert.match(outcome.stderr, /allowed: network/);
});

await run();
