// node large_messages.mjs PROGRAM FAKE_MCP [MB] [rounds]: measures how long large calls delay other
// requests.
//
// Three clients send calls of MB megabytes of small values one after another while another client
// sends a ping every 10 ms without waiting for the responses. Rounds without rules alternate with
// rounds with a rule that reads arguments and results. Prints the median and maximum delays in
// milliseconds, and the maximum memory.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';

const [program, fake, megabytes = '60', rounds = '3'] = process.argv.slice(2);
if (!fake) {
  console.error('usage: node large_messages.mjs PROGRAM FAKE_MCP [MB] [rounds]');
  process.exit(2);
}
const SENDERS = 3, SECONDS = 20;
const rules = `
[security.rules.mcp.arguments]
on = "mcp.request"
if = '''mcp.request.tool_name == "big" && mcp.request.arguments_text.contains("no such text")'''
decision = "block"
`;
const element = '{"k":"0123456789abcdef","n":12345},';
const payload = `[${element.repeat(Math.floor((Number(megabytes) * 1e6) / element.length))}0]`;

function post(url, body, headers, agent) {
  return new Promise((resolve, reject) => {
    const req = http.request(url, { method: 'POST', agent, headers: { accept: 'application/json, text/event-stream',
      'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers } }, (res) => {
      let text = '';
      res.on('data', (chunk) => { if (text.length < 4096) text += chunk; });
      res.on('end', () => resolve({ text, session: res.headers['mcp-session-id'], status: res.statusCode }));
      res.on('error', reject);
    });
    req.on('error', reject);
    req.end(body);
  });
}
async function client(url) {
  const agent = new http.Agent({ keepAlive: true });
  const first = await post(url, JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25',
    capabilities: {}, clientInfo: { name: 'bench', version: '1' } } }), {}, agent);
  const headers = { 'mcp-session-id': first.session, 'mcp-protocol-version': '2025-11-25' };
  await post(url, '{"jsonrpc":"2.0","method":"notifications/initialized"}', headers, agent);
  return { agent, send: (body) => post(url, body, headers, agent) };
}
const memory = (pid) => {
  let sum = 0;
  for (const name of fs.readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const status = fs.readFileSync(`/proc/${name}/status`, 'utf8');
      if (Number(name) !== pid && Number(/^PPid:\s+(\d+)/m.exec(status)[1]) !== pid) continue;
      sum += Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0);
    } catch { /* the process has ended */ }
  }
  return sum / 1024;
};

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
  // The clients are separate processes, so that their writes do not delay the pings.
  const senders = Array.from({ length: SENDERS }, () => spawn(process.execPath, [process.argv[1], program, fake, megabytes, '0', url], { stdio: ['ignore', 'pipe', 'inherit'] }));
  const counts = senders.map(() => '');
  senders.forEach((sender, i) => sender.stdout.on('data', (data) => (counts[i] += data)));
  const pinger = await client(url);
  const delays = [];
  let most = 0, open = 0;
  const end = Date.now() + SECONDS * 1000;
  let id = 0;
  await new Promise((done) => {
    const timer = setInterval(() => {
      if (Date.now() > end) {
        clearInterval(timer);
        return done();
      }
      const begin = performance.now();
      ++open;
      pinger.send(`{"jsonrpc":"2.0","id":${++id},"method":"ping"}`).then(() => delays.push(performance.now() - begin)).finally(() => --open);
      if (id % 20 === 0) most = Math.max(most, memory(child.pid));
      return undefined;
    }, 10);
  });
  for (let i = 0; i < 3000 && open > 0; ++i) await new Promise((done) => setTimeout(done, 10));
  senders.forEach((sender) => sender.kill());
  child.kill();
  await new Promise((done) => child.on('exit', done));
  fs.rmSync(work, { recursive: true, force: true });
  delays.sort((a, b) => a - b);
  const calls = counts.join('').split('\n').filter((line) => line === 'ok').length;
  const refused = counts.join('').split('\n').filter((line) => line.startsWith('refused'));
  return { median: delays[delays.length >> 1], p99: delays[Math.floor(delays.length * 0.99)], max: delays.at(-1), calls, refused: refused.length,
    why: refused[0], pings: delays.length, lost: open, most };
}

if (process.argv[6]) {
  const sender = await client(process.argv[6]);
  for (let id = 1; id < 1000; ++id) {
    const got = await sender.send(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"s__big","arguments":{"v":${payload}}}}`);
    console.log(got.text.includes('"result"') ? 'ok' : `refused ${got.text.slice(0, 200)}`);
  }
} else {
  const seen = { 'no rules': [], 'a rule on arguments': [] };
  for (let round = 0; round < Number(rounds); ++round) {
    for (const name of Object.keys(seen)) {
      const one = await measure(name !== 'no rules');
      seen[name].push(one);
      console.log(`${name}: ${JSON.stringify(one)}`);
    }
  }
  const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1].toFixed(0);
  console.log('\n| | pings: median ms | p99 | most | large calls | refused | MiB |\n|---|---|---|---|---|---|---|');
  for (const [name, all] of Object.entries(seen)) {
    const of = (key) => median(all.map((one) => one[key]));
    console.log(`| ${name} | ${of('median')} | ${of('p99')} | ${of('max')} | ${of('calls')} | ${of('refused')} | ${of('most')} |`);
  }
}
