// Tests telemetry-otlp, which sends calls to a collector as spans and metrics from a compartment
// that can reach only the collector. Also tests outages of the collector, and that the client's
// trace context is forwarded.
import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, build, fake, run, runProgram, sanitized, show, test, until } from './lib.mjs';
import { ask, statusOf } from './status.mjs';
import { attributes, startCollector } from '../fixtures/collector.mjs';

const trace = '0af7651916cd43dd8448eb211c80319c';
const traceparent = `00-${trace}-b7ad6b7169203331-01`;

async function observed(t, otlp = {}, more = {}) {
  const collector = await startCollector();
  t.defer(() => collector.stop());
  const gateway = await t.gateway({
    mcpServers: { local: fake('--tool', 'a') },
    telemetry: { otlp: { plugin: 'telemetry-otlp', url: collector.url, flush_ms: 20, metrics_ms: 200, backoff_max_ms: 100, ...otlp } },
    ...more,
  });
  return { collector, gateway, client: await t.http(gateway) };
}
const calls = (collector) => collector.spans.filter(({ name }) => name === 'tools/call a');
const compartment = async (gateway, name) => (await statusOf(gateway)).compartments.find((one) => one.name === name);

test('every call is a span with its attributes and without its content', async (t) => {
  const { collector, client } = await observed(t, { service_name: 'gateway-7', headers: { 'x-token': 'canary-header' } });
  await client.tool('local__a', { secret: 'canary-argument' });
  await client.tool('local__a', {}, { meta: { traceparent } });
  await until('both spans have arrived', () => calls(collector).length === 2);
  const [plain, traced] = calls(collector);
  assert.equal(traced.traceId, trace);
  assert.match(plain.traceId, /^[0-9a-f]{32}$/);
  assert.notEqual(plain.traceId, trace);
  assert.match(plain.spanId, /^[0-9a-f]{16}$/);
  assert.notEqual(plain.spanId, traced.spanId);
  assert.deepEqual(plain.service, { 'service.name': 'gateway-7' });
  assert.equal(plain.attributes['mcp.method.name'], 'tools/call');
  assert.equal(plain.attributes['gen_ai.tool.name'], 'a');
  assert.equal(plain.attributes['bulkhead.server'], 'local');
  assert.equal(plain.attributes['bulkhead.outcome'], 'ok');
  assert.equal(plain.status.code, 1);
  assert.ok(BigInt(plain.endTimeUnixNano) >= BigInt(plain.startTimeUnixNano));
  assert.equal(collector.requests[0].headers['x-token'], 'canary-header');
  assert.doesNotMatch(JSON.stringify(collector.requests.map(({ body }) => body)), /canary-argument/);
});

test("the gateway's own credentials are in no span, even if escaped", async (t) => {
  const canary = 'tango-7/seven=foxtrot==';
  const { collector, client } = await observed(t, {}, {
    mcpServers: { local: { ...fake('--tool', 'a'), env: { API_TOKEN: canary } } },
  });
  const units = [...canary].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
  const long = 'x'.repeat(504); // the limit of 512 bytes cuts the credential
  for (const uri of [`file:///${canary}`, `file:///${units}`, `file:///?q=${encodeURIComponent(canary)}`, long + canary]) {
    await assert.rejects(client.request('resources/read', `{"uri":"${uri}"}`));
  }
  const read = () => collector.spans.filter(({ name }) => name === 'resources/read').map(({ attributes: all }) => all['mcp.resource.uri']);
  await until('all are there', () => read().length === 4);
  assert.deepEqual(read(), ['file:///***', 'file:///***', 'file:///?q=***', `${long}***`]);
});

test('the span of a rejected call has the rule', async (t) => {
  const { collector, client } = await observed(t, {}, {
    security: { rules: { mcp: { no_a: { on: 'mcp.request', if: 'mcp.request.tool_name == "a"', decision: 'block' } } } },
  });
  await assert.rejects(client.tool('local__a', {}), /no_a/);
  const span = await until('it is there', () => calls(collector)[0]);
  assert.equal(span.status.code, 2);
  assert.equal(span.attributes['error.type'], 'refused');
  assert.match(span.attributes['bulkhead.policy.rule'], /no_a/);
});

test('changes of policies and plugins are spans', async (t) => {
  const held = t.path('held.so');
  const install = (version) => {
    writeFileSync(t.path('held.plugin.toml'), `id = "held"\nversion = "${version}"\nabi_major = 1\nabi_minor_needed = 0\nprovides = ["bh.tools/1"]\n`);
    copyFileSync(join(build, `core/plugin/testing_plugins/plugins/held-${version}.so`), `${held}.new`);
    renameSync(`${held}.new`, held);
  };
  install('one');
  const more = { tools: { mine: { plugin: held } } };
  const { collector, gateway } = await observed(t, {}, more);
  const changes = (name) => collector.spans.filter((span) => span.name === name);
  const [started] = await until('the policies at the start', () => changes('policy change').length === 1 && changes('policy change'));
  assert.equal(started.kind, 1);
  assert.equal(started.attributes['bulkhead.policy.generation'], '1');
  assert.equal(started.attributes['bulkhead.policy.rules'], '0');
  assert.equal(started.attributes['bulkhead.policy.changes'], undefined);
  await until('all processes run', async () => (await statusOf(gateway)).compartments.every((one) => one.state === 'running'));

  install('two');
  const answer = await ask(gateway, 'POST', '/plugins/swap/mine', {});
  assert.equal(answer.status, 200, show(answer));
  const [swap] = await until('the swap', () => changes('plugin change').length === 1 && changes('plugin change'));
  assert.equal(swap.attributes['bulkhead.plugin'], 'tools.mine');
  assert.match(swap.attributes['bulkhead.plugin.change'], new RegExp(`swap: one \\(sha256 ${answer.from.sha256}\\) replaced by two \\(sha256 ${answer.to.sha256}\\)`));

  const profile = JSON.parse(readFileSync(gateway.config, 'utf8'));
  profile.security = { rules: { mcp: { no_a: { on: 'mcp.request', if: 'mcp.request.tool_name == "a"', decision: 'block' } } } };
  writeFileSync(gateway.config, JSON.stringify(profile));
  assert.equal((await ask(gateway, 'POST', '/reload-config')).status, 200);
  const rules = await until('the new rules', () => changes('policy change')[1]);
  assert.deepEqual(['generation', 'rules'].map((name) => rules.attributes[`bulkhead.policy.${name}`]), ['2', '1']);
  assert.match(rules.attributes['bulkhead.policy.changes'], /1 rule added/);
});

test('the counters are reported and increase', async (t) => {
  const { collector, client } = await observed(t);
  const count = () => {
    const points = collector.points('bulkhead.request.duration');
    return Number(points.find((point) => attributes(point.attributes)['mcp.method.name'] === 'tools/call')?.count ?? 0);
  };
  for (let i = 0; i < 3; ++i) await client.tool('local__a', { i });
  await until('three are counted', () => count() === 3);
  await client.tool('local__a', {});
  await until('and then four', () => count() === 4);
  assert.equal(collector.points('bulkhead.telemetry.dropped_spans')[0].asInt, '0');
});

test('while the collector fails, spans wait but calls do not, and no span is lost or sent twice', async (t) => {
  const { collector, client, gateway } = await observed(t);
  collector.status = 503;
  for (let i = 0; i < 20; ++i) await client.tool('local__a', { i });
  await until('the collector is called again', () => collector.requests.filter(({ url }) => url === '/v1/traces').length >= 3);
  collector.status = 200;
  await until('all are there', () => calls(collector).length === 20);
  assert.equal(new Set(calls(collector).map(({ spanId }) => spanId)).size, 20);
  assert.equal((await compartment(gateway, 'egress.telemetry.otlp')).restarts, 0);
});

test('spans beyond the queue limit are dropped and counted, and retries are limited', async (t) => {
  const { collector, client } = await observed(t, { queue_spans: 5, retry_for_ms: 300 });
  collector.status = 503;
  const sent = 50;
  for (let i = 0; i < sent; ++i) await client.tool('local__a', { i });
  await until('some batch was given up', () => collector.requests.length >= 4);
  collector.status = 200;
  await until('the other spans and the counter have arrived', () => {
    const dropped = Number(collector.points('bulkhead.telemetry.dropped_spans')[0]?.asInt ?? 0);
    const others = collector.spans.length - calls(collector).length;
    return dropped > 0 && dropped + calls(collector).length + others >= sent;
  });
});

test('a collector that never responds does not delay calls', async (t) => {
  const { collector, client } = await observed(t, { timeout_ms: 200, queue_spans: 5 });
  collector.status = 0;
  for (let i = 0; i < 100; ++i) await client.tool('local__a', { i });
  await until('it was asked', () => collector.requests.length >= 1);
});

test('the client\'s trace is forwarded upstream unchanged', async (t) => {
  const up = await t.fakeHttp();
  const { client } = await observed(t, {}, { mcpServers: { up: { url: up.url } } });
  const meta = { traceparent, tracestate: 'vendor=1', other: 1 };
  await client.tool('up__echo', { n: 1 }, { meta });
  const sent = up.requests.map(({ body }) => body).find((body) => body?.includes?.('"echo"'));
  const { params } = JSON.parse(sent);
  assert.deepEqual(params._meta, meta);
});

test('the compartment can use one network port, but no files or programs', async (t) => {
  const { gateway, client, collector } = await observed(t);
  await client.tool('local__a', {});
  await until('it is there', () => calls(collector).length === 1);
  const one = await compartment(gateway, 'egress.telemetry.otlp');
  assert.ok(sanitized || one.in_force.includes('seccomp'), show(one));
  assert.ok(one.in_force.includes('landlock-files') || one.missing.includes('landlock-files'), show(one));
});

test('invalid configuration is rejected, and the error names the key', (t) => {
  for (const [keys, expected] of [
    [{}, /url: the address/],
    [{ url: 'http://otel.example:4318' }, /url: http:\/\/ is allowed only for this machine/],
    [{ url: 'https://otel.example', queue: 1 }, /queue: unknown key/],
  ]) {
    const { code, stderr } = runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}'], {
      profile: { mcpServers: {}, telemetry: { otlp: { plugin: 'telemetry-otlp', ...keys } } },
    });
    assert.notEqual(code, 0, show(keys));
    assert.match(stderr, expected);
  }
});

await run();
