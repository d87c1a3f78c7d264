// Swaps a tools plugin while 64 clients call its tools, which take 0 to 2 s. Every tenth version is
// broken. Each call must get exactly one result, with its own mark, and have one row.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, build, run, runProgram, show, sleep, test, until } from '../e2e/lib.mjs';
import { ask, statusOf } from '../e2e/status.mjs';

const swaps = Number(process.argv[2] ?? 100);
process.argv.length = 2;
const clients = 64;
const durations = [0, 0, 0, 10, 10, 100, 500, 2_000]; // in ms
const broken = ['wrong-major', 'crashes-in-init', 'hangs-in-constructor', 'hangs-in-start', 'fails-in-start'];
const built = join(build, 'core/plugin/testing_plugins/plugins');

function install(folder, name, version) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'held.plugin.toml'), `id = "held"\nversion = "${version}"\nabi_major = 1\nabi_minor_needed = 0\nprovides = ["bh.tools/1"]\n`, { mode: 0o644 });
  copyFileSync(join(built, `held-${name}.so`), join(folder, 'held.so'));
  return join(folder, 'held.so');
}
const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

test('no call is lost or doubled while a tools plugin is swapped', async (t) => {
  const limits = { drain_ms: 5_000, plugin_init_ms: 1_000 };
  const gateway = await t.gateway({ limits, tools: { mine: { plugin: install(t.path('first'), 'one', '0') } }, telemetry: { records: { plugin: 'telemetry-sqlite' } } });
  let calls = 0, stop = false, waits = [], failure;
  const seen = { one: 0, two: 0 };
  const loads = [];
  for (let i = 0; i < clients; ++i) {
    const client = await t.http(gateway);
    loads.push((async () => {
      for (let n = 0; !stop; ++n) {
        const ms = durations[(i + n) % durations.length], mark = `${i}-${n}`, begin = performance.now();
        const { content: [{ text }], isError } = await client.tool('mine__sleep', { ms, mark });
        waits.push(performance.now() - begin - ms);
        const [version, answered] = text.split(' ');
        assert.ok(!isError && answered === mark && version in seen, `${mark}: ${text}`);
        ++seen[version];
        ++calls;
      }
    })().catch((error) => { failure ??= error; stop = true; }));
  }
  const phase = async (work) => {
    waits = [];
    const before = calls;
    await work();
    const sorted = waits.sort((a, b) => a - b);
    return { calls: calls - before, p50: at(sorted, 0.5).toFixed(1), p99: at(sorted, 0.99).toFixed(1), 'p99.9': at(sorted, 0.999).toFixed(1) };
  };
  const outcome = { swapped: 0, rejected: 0 };
  let swap = 0;
  const change = async () => {
    const bad = swap % 10 === 9;
    const name = bad ? broken[Math.floor(swap / 10) % broken.length] : ['two', 'one'][outcome.swapped % 2];
    const file = install(t.path(`v${++swap}`), name, `1.${swap}`);
    // A version can be replaced when the one before it has completed its calls.
    let answer;
    await until('the swap is possible', async () => (answer = await ask(gateway, 'POST', '/plugins/swap/mine', { file })).status !== 503, 60_000);
    assert.equal(answer.status, bad ? 400 : 200, `${name}: ${JSON.stringify(answer)}`);
    ++outcome[bad ? 'rejected' : 'swapped'];
  };
  const without = await phase(() => sleep(20_000));
  const during = await phase(async () => { for (let i = 0; i < swaps && !stop; ++i) await change(); });
  stop = true;
  await Promise.all(loads);
  assert.equal(failure, undefined, failure?.stack);
  console.table({ 'without swaps': without, 'with swaps': during });
  console.log(`    ${JSON.stringify(outcome)}, results by version: ${JSON.stringify(seen)}`);
  assert.ok(seen.one > 100 && seen.two > 100);
  const sql = "SELECT count(*), sum(decision = 'allowed'), count(DISTINCT request_preview) FROM mcp_calls WHERE tool_name = 'sleep'";
  const rows = () => {
    const done = runProgram(t, ['inspect', '--json', sql], { env: gateway.env() });
    assert.equal(done.code, 0, show(done));
    return JSON.parse(done.stdout).rows[0];
  };
  await until('each call has a row', () => rows()[0] >= calls);
  assert.deepEqual(rows(), [calls, calls, calls]);
  assert.equal((await statusOf(gateway)).compartments.filter((one) => one.name === 'mine').length <= 2, true);
}, { timeout: 1_800_000 });

run();
