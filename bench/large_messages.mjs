// node large_messages.mjs PROGRAM FAKE_MCP [MB] [rounds]: measures how long large calls delay other
// requests.
//
// Three clients send calls of MB megabytes of small values one after another while another client
// sends a ping every 10 ms without waiting for the responses. Rounds without rules alternate with
// rounds with a rule that reads arguments. Prints the median and maximum delays in milliseconds,
// and the maximum memory. tests/drills/large_messages.sh tests the same, and large results.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { measureDelays, median, statusMiB } from '../tests/drills/large_load.mjs';

const [program, fake, megabytes = '60', rounds = '3'] = process.argv.slice(2);
if (!fake) {
  console.error('usage: node large_messages.mjs PROGRAM FAKE_MCP [MB] [rounds]');
  process.exit(2);
}
const rules = `
[security.rules.mcp.arguments]
on = "mcp.request"
if = '''mcp.request.tool_name == "big" && mcp.request.arguments_text.contains("no such text")'''
decision = "block"
`;
// Returns the memory of a process and its children in MiB.
function memory(pid) {
  let sum = 0;
  for (const name of fs.readdirSync('/proc')) {
    try {
      if (/^\d+$/.test(name) && (Number(name) === pid || Number(/^PPid:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${name}/status`, 'utf8'))[1]) === pid)) sum += statusMiB(name, 'VmRSS');
    } catch { /* the process has ended */ }
  }
  return sum;
}

async function measure(withRules) {
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'bulkhead-large-'));
  const config = path.join(work, 'gateway.toml');
  fs.writeFileSync(config, `[mcpServers.s]\ncommand = ${JSON.stringify(fake)}\nargs = ["--tool", "big", "--result", "big={\\"content\\":[]}"]\n`
    + `sandbox = "off"\n[limits]\nmessage_bytes = 67108864\npolicy_timeout_ms = 60000\n${withRules ? rules : ''}`);
  const env = { ...process.env, HOME: work, XDG_STATE_HOME: work, XDG_RUNTIME_DIR: work };
  const child = spawn(program, ['serve', '--config', config, '--listen', '127.0.0.1:0'], { env, cwd: work, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (data) => (said += data));
  let url;
  for (let i = 0; i < 1000 && !url; ++i) {
    url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(said)?.[0];
    await new Promise((done) => setTimeout(done, 10));
  }
  let most = 0;
  const { refused, ...seen } = await measureDelays(url, { tool: 's__big', kind: 'values', megabytes }, { look: () => { most = Math.max(most, memory(child.pid)); } });
  child.kill();
  await new Promise((done) => child.on('exit', done));
  fs.rmSync(work, { recursive: true, force: true });
  return { ...seen, refused: refused.length, why: refused[0], most };
}

const seen = { 'no rules': [], 'a rule on arguments': [] };
for (let round = 0; round < Number(rounds); ++round) {
  for (const name of Object.keys(seen)) {
    const one = await measure(name !== 'no rules');
    seen[name].push(one);
    console.log(`${name}: ${JSON.stringify(one)}`);
  }
}
console.log('\n| | pings: median ms | p99 | most | large calls | refused | MiB |\n|---|---|---|---|---|---|---|');
for (const [name, all] of Object.entries(seen)) {
  const of = (key) => median(all.map((one) => one[key])).toFixed(0);
  console.log(`| ${name} | ${of('median')} | ${of('p99')} | ${of('max')} | ${of('calls')} | ${of('refused')} | ${of('most')} |`);
}
