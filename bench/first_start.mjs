// Measures how long a client waits for a server that npx starts: directly and through `bulkhead
// stdio`, with empty and filled caches, alternating. Requires npx and the npm registry. Prints the
// milliseconds from the client's first byte until the server's tools are listed, and until the
// response to the first call.
//
//   BULKHEAD_BUILD=build tests/e2e/run.sh bench/first_start.mjs [ROUNDS]
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StdioClient, program, sleep } from '../tests/e2e/lib.mjs';

const rounds = Number(process.argv[2] ?? 5);
const npx = { command: 'npx', args: ['-y', '@modelcontextprotocol/server-sequential-thinking@2025.7.1'] };
const call = { thought: 'x', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 };
const base = mkdtempSync(join(tmpdir(), 'bulkhead-first-start-'));

async function start(command, args, home) {
  const env = { PATH: process.env.PATH, HOME: home, XDG_STATE_HOME: join(home, 'state'), XDG_CONFIG_HOME: join(home, 'config'), XDG_RUNTIME_DIR: home };
  const began = performance.now();
  const client = new StdioClient(command, args, { env, cwd: home });
  await client.initialize();
  let tools = [];
  while (tools.length === 0) {
    tools = await client.toolNames();
    if (tools.length === 0) await sleep(20); // the server is not listed yet; a real client would wait for list_changed
  }
  const listed = performance.now() - began;
  await client.tool(tools[0], call);
  const answered = performance.now() - began;
  await client.close();
  return { listed, answered };
}
function fresh(name) {
  const home = join(base, name);
  mkdirSync(home, { mode: 0o700 });
  const file = join(home, 'profile.json');
  writeFileSync(file, JSON.stringify({ mcpServers: { s: npx } }));
  return { home, direct: () => start(npx.command, npx.args, home), gateway: () => start(program, ['stdio', '--config', file], home) };
}
const middle = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];
const row = (name, all) =>
  console.log(`| ${name} | ${Math.round(middle(all.map((one) => one.listed)))} | ${Math.round(middle(all.map((one) => one.answered)))} |`);

const empty = { direct: [], gateway: [] };
for (let i = 0; i < Math.min(rounds, 3); ++i) {
  for (const how of ['direct', 'gateway']) empty[how].push(await fresh(`empty-${how}-${i}`)[how]());
}
const direct = fresh('direct');
const gateway = fresh('gateway');
await direct.direct();
await gateway.gateway();
const full = { direct: [], gateway: [] };
for (let i = 0; i < rounds; ++i) {
  full.direct.push(await direct.direct());
  full.gateway.push(await gateway.gateway());
}
console.log(`| medians of ${rounds} (empty: ${Math.min(rounds, 3)}), ms | the list has its tools | the first call is answered |\n|---|---|---|`);
row('empty caches, npx itself', empty.direct);
row('empty caches, behind bulkhead stdio', empty.gateway);
row('second start, npx itself', full.direct);
row('second start, behind bulkhead stdio', full.gateway);
rmSync(base, { recursive: true, force: true });
