// Kills the endpoint while clients make calls. Each call with a result must have a row in the
// session database, or be counted in a gap, and must have a span. e2e/telemetry.mjs tests the
// database with HTTP clients. Here a client on stdio makes calls, and calls are exported as spans.
import { readFileSync } from 'node:fs';
import { assert, descendants, fake, Gateway, run, show, StdioClient, test, until } from '../e2e/lib.mjs';
import { Records } from '../e2e/records.mjs';
import { attributes, startCollector } from '../fixtures/collector.mjs';

const KILLS = 20;
const limits = { retry_min_ms: 20, retry_max_ms: 100 };

const endpointOf = (pid) => until('the endpoint runs', () => descendants(pid).find((one) => {
  try {
    return readFileSync(`/proc/${one}/cmdline`, 'utf8').includes('\0endpoint\0');
  } catch {
    return false;
  }
}), 20_000);

// Four loops of calls run while the endpoint is killed. Returns the numbers of the calls with a
// result, and the number of all calls.
async function killed(pid, clients) {
  const answered = new Set();
  let sent = 0, stopped = false;
  const caller = async (client) => {
    while (!stopped) {
      const n = ++sent;
      const traceparent = `00-${String(n).padStart(32, '0')}-b7ad6b7169203331-01`;
      await client.tool('local__ok', { call: `n${n}-` }, { meta: { traceparent } }).then(() => answered.add(n), () => {});
    }
  };
  const callers = clients.map(caller);
  for (let kill = 0; kill < KILLS; ++kill) {
    const endpoint = await endpointOf(pid);
    const before = answered.size;
    await until('calls are answered', () => answered.size >= before + 10 + 3 * kill, 20_000);
    process.kill(endpoint, 'SIGKILL');
    await until('it is gone', async () => (await endpointOf(pid)) !== endpoint, 20_000);
  }
  const last = answered.size;
  await until('calls are answered', () => answered.size >= last + 10, 20_000);
  stopped = true;
  await Promise.all(callers);
  return { answered, sent };
}

async function onStdio(t, profile) {
  const gateway = new Gateway(t.dir, profile);
  const client = new StdioClient(...gateway.stdioCommand());
  t.defer(() => client.close());
  t.gateways.push({ stderr: () => client.stderr });
  await client.initialize();
  return { gateway, clients: Array(4).fill(client), pid: client.child.pid, stop: () => client.close() };
}
async function onHttp(t, profile) {
  const gateway = await t.gateway(profile);
  const clients = [];
  for (let i = 0; i < 4; ++i) clients.push(await t.http(gateway));
  return { gateway, clients, pid: gateway.pid, stop: () => gateway.stop() };
}

for (const failure of ['spill', 'block']) {
  test(`red team: calls of a client on stdio are recorded although the endpoint is killed (on_failure ${failure})`, async (t) => {
    const { gateway, clients, pid, stop } = await onStdio(t, {
      mcpServers: { local: fake('--tool', 'ok') }, telemetry: { records: { plugin: 'telemetry-sqlite', on_failure: failure } }, limits,
    });
    const { answered, sent } = await killed(pid, clients);
    await stop();
    const records = new Records(gateway);
    const rows = await records.rows("SELECT request_preview FROM mcp_calls WHERE method = 'tools/call'");
    assert.ok(rows.length < 10_000, `${rows.length} rows`); // the command shows no more
    const times = new Map();
    for (const [request] of rows) {
      const n = Number(/"call":"n(\d+)-"/.exec(request)[1]);
      times.set(n, (times.get(n) ?? 0) + 1);
    }
    const missing = [...answered].filter((n) => !times.has(n));
    const gaps = (await records.rows("SELECT detail FROM audit_marks WHERE kind = 'gap'")).map(([detail]) => detail);
    const counted = gaps.map((detail) => /^records (\d+) to (\d+) are missing/.exec(detail)).reduce((sum, found) => sum + Number(found[2] - found[1] + 1), 0);
    assert.ok(answered.size > KILLS * 10 && counted <= sent, show(gaps));
    assert.ok(missing.length <= counted, `${missing.length} of ${answered.size} answered calls have no row, ${show(gaps)}`);
    assert.deepEqual(missing, [], `no row although there was room: ${show(gaps)}`);
    assert.deepEqual([...times].filter(([, count]) => count !== 1), [], 'each once');
    await records.verify();
  }, { timeout: 180_000 });
}

for (const [where, start] of [['on stdio', onStdio], ['over HTTP', onHttp]]) {
  test(`red team: calls are exported as spans although the endpoint is killed, ${where}`, async (t) => {
    const collector = await startCollector();
    t.defer(() => collector.stop());
    const { clients, pid, stop } = await start(t, {
      mcpServers: { local: fake('--tool', 'ok') }, limits,
      telemetry: { otlp: { plugin: 'telemetry-otlp', url: collector.url, flush_ms: 20, metrics_ms: 200, backoff_max_ms: 100, queue_spans: 10_000 } },
    });
    const { answered } = await killed(pid, clients);
    const spans = () => {
      const times = new Map();
      for (const { name, traceId } of collector.spans) if (name === 'tools/call ok') times.set(Number(traceId), (times.get(Number(traceId)) ?? 0) + 1);
      return times;
    };
    const missing = () => { const times = spans(); return [...answered].filter((n) => !times.has(n)); };
    await until('the spans of all answered calls have arrived', () => missing().length === 0, 10_000).catch(() => {});
    const points = collector.points('bulkhead.telemetry.dropped_spans');
    assert.deepEqual(missing(), [], `of ${answered.size} answered calls; ${show(points.map((point) => [attributes(point.attributes ?? []), point.asInt]))}`);
    assert.deepEqual([...spans()].filter(([, count]) => count !== 1), [], 'each once');
    await stop();
  }, { timeout: 180_000 });
}

await run({ parallel: 2 });
