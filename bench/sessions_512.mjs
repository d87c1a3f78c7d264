// node sessions_512.mjs [rounds]: measures 512 concurrent client sessions over HTTP, each of which
// makes calls one after another. Rounds with the program alternate with rounds with the relay.
// Prints memory, calls per second and processor time per call. Environment variables: GATEWAY_BIN,
// and BENCH_DIR, which contains the built benchmark tools (load, relay, upstream) in bin/. `make
// bench BENCH_TOOLS=DIR` runs this benchmark last.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const rounds = Number(process.argv[2] ?? 3);
const tool = (name) => path.join(process.env.BENCH_DIR, 'bin', name);
const port = 21700;
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'bulkhead-sessions-'));
const config = path.join(work, 'mcp.json');
fs.writeFileSync(config, JSON.stringify({ mcpServers: { u0: { type: 'http', url: `http://127.0.0.1:${port}/mcp` } } }));
const env = { ...process.env, XDG_STATE_HOME: work, XDG_RUNTIME_DIR: work };

const serve = ['serve', '--config', config, '--listen', `127.0.0.1:${port + 1}`];
const gateways = {
  relay: [tool('relay'), '--http', String(port + 1), '--up-http', String(port)],
  'one process': [process.env.GATEWAY_BIN, ...serve, '--single-process'],
  compartments: [process.env.GATEWAY_BIN, ...serve],
};

function measure(name, mock) {
  const args = ['--mode', 'call', '--transport', 'http', '--url', `http://127.0.0.1:${port + 1}/mcp`, '--conns', '512',
    '--warmup', '0.5', '--duration', '2', '--expect-tools', '10', '--limit', '60', '--mock-pid', String(mock.pid),
    '--log', '/dev/null', '--json', '--', ...gateways[name]];
  const ran = spawnSync(tool('load'), args, { encoding: 'utf8', env, timeout: 90_000 });
  try {
    return JSON.parse(ran.stdout);
  } catch {
    return { ok: false, error: ran.stderr || ran.stdout || `exit ${ran.status}` };
  }
}

const median = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
const mock = spawn(tool('upstream'), ['--http', String(port), '--tools', '10', '--ttl', '600'], { stdio: 'ignore' });
const seen = Object.fromEntries(Object.keys(gateways).map((name) => [name, []]));
try {
  await new Promise((done) => setTimeout(done, 500));
  for (let round = 0; round < rounds; ++round) {
    for (const name of Object.keys(gateways)) seen[name].push(measure(name, mock));
  }
} finally {
  mock.kill();
  fs.rmSync(work, { recursive: true, force: true });
}

console.log('\n### 512 sessions, HTTP to HTTP\n\n| gateway | resident MiB, most | calls/s | CPU us/call | p99 ms |\n|---|---|---|---|---|');
let failed = false;
for (const [name, all] of Object.entries(seen)) {
  const bad = all.find((each) => !each.ok || each.errors + each.rpc_errors + each.bad > 0);
  failed ||= bad !== undefined;
  const of = (get) => median(all.map(get)).toFixed(1);
  console.log(bad ? `| ${name} | FAILED: ${bad.error || JSON.stringify(bad)} |` : `| ${name} | ${of((x) => x.rss_peak_kb / 1024)} | `
    + `${of((x) => x.rps)} | ${of((x) => x.gw_cpu_per_1000 * 1000)} | ${of((x) => x.p99_us / 1000)} |`);
}
process.exitCode = failed ? 1 : 0;
