// node shared_stdio.mjs [rounds]: measures `bulkhead stdio` beside a running gateway with 8 servers
// of 12 tools, in rounds that alternate between a client that uses the gateway's servers and one
// that starts its own (--own). Prints the proportional set size (PSS) of the client with all its
// processes, and the time from its start to its first tool list. Environment variables: GATEWAY_BIN
// (default build/bin/bulkhead) and FAKE_MCP (default build/tests/fake_mcp). Results depend on the
// load of the machine.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const rounds = Number(process.argv[2] ?? 9);
const root = path.resolve(import.meta.dirname, '..');
const program = process.env.GATEWAY_BIN ?? path.join(root, 'build/bin/bulkhead');
const server = process.env.FAKE_MCP ?? path.join(root, 'build/tests/fake_mcp');
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'bulkhead-shared-'));
const config = path.join(work, 'mcp.json');
const servers = Array.from({ length: 8 }, (_, i) => [`s${i}`, { command: server, args: ['--tools', '12'], cwd: work }]);
fs.writeFileSync(config, JSON.stringify({ mcpServers: Object.fromEntries(servers) }));
const env = { PATH: process.env.PATH, HOME: work, XDG_CONFIG_HOME: work, XDG_STATE_HOME: work, XDG_RUNTIME_DIR: work };

// Returns 0 for a process that has exited.
function memoryOf(pid) {
  try {
    return Number(/^Pss:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]);
  } catch {
    return 0;
  }
}

function withChildren(pid) {
  const parents = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    try {
      const stat = fs.readFileSync(`/proc/${name}/stat`, 'utf8');
      return [[Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])]];
    } catch {
      return [];
    }
  });
  const found = [pid];
  for (let i = 0; i < found.length; ++i) found.push(...parents.filter(([, parent]) => parent === found[i]).map(([child]) => child));
  return found;
}

// Returns a promise of the standard error that matches, at most for 20 s.
const printed = (child, pattern) => new Promise((resolve, reject) => {
  let text = '';
  const timer = setTimeout(() => reject(new Error(`not printed: ${pattern}\n${text}`)), 20_000);
  child.stderr.on('data', (data) => {
    text += data;
    if (!pattern.test(text)) return;
    clearTimeout(timer);
    resolve(text);
  });
});
const closed = (child) => new Promise((resolve) => child.once('close', resolve));

async function measure(args) {
  const start = performance.now();
  const client = spawn(program, ['stdio', '--config', config, ...args], { env, cwd: work, stdio: ['pipe', 'pipe', 'ignore'] });
  const end = closed(client);
  const waiting = new Map();
  let text = '';
  client.stdout.on('data', (data) => {
    const lines = (text + data).split('\n');
    text = lines.pop();
    for (const message of lines.map((line) => JSON.parse(line))) waiting.get(message.id)?.(message.result);
  });
  let id = 0;
  const send = (message) => client.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const call = (method, params) => new Promise((resolve) => {
    waiting.set(++id, resolve);
    send({ id, method, params });
  });
  await call('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } });
  send({ method: 'notifications/initialized' });
  const { tools } = await call('tools/list', {});
  const ms = performance.now() - start;
  if (tools.length !== 96) throw new Error(`${tools.length} tools instead of 96`);
  // A client with its own servers gets stored lists before they are ready.
  await Promise.all(servers.map(([name]) => call('tools/call', { name: `${name}__tool_0`, arguments: {} })));
  const processes = withChildren(client.pid);
  const kilobytes = processes.reduce((sum, pid) => sum + memoryOf(pid), 0);
  client.stdin.end();
  await end;
  return { ms, megabytes: kilobytes / 1000, processes: processes.length };
}

const gateway = spawn(program, ['serve', '--config', config, '--listen', '127.0.0.1:0'], { env, cwd: work, stdio: ['ignore', 'ignore', 'pipe'] });
const stopped = closed(gateway);
try {
  await printed(gateway, /^s7 +stdio +ready/m);
  const kinds = { joined: [], own: ['--own'] };
  const seen = { joined: [], own: [] };
  for (let round = 0; round < rounds; ++round) {
    for (const [name, args] of Object.entries(kinds)) seen[name].push(await measure(args));
  }
  const median = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
  const of = (name, key) => seen[name].map((one) => one[key]);
  for (const name of Object.keys(kinds)) {
    console.log(`${name}: PSS ${median(of(name, 'megabytes')).toFixed(1)} MB in ${median(of(name, 'processes'))} processes, first list ${median(of(name, 'ms')).toFixed(1)} ms (medians of ${rounds})`);
  }
} finally {
  gateway.kill('SIGTERM');
  await stopped;
  fs.rmSync(work, { recursive: true, force: true });
}
