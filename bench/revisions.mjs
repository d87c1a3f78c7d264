// node revisions.mjs PROGRAM FAKE_MCP [calls] [rounds]: measures calls between clients and servers of MCP
// 2025-11-25 and 2026-07-28, in all four pairings.
//
// The client is this script, on standard input and output. The server is another gateway, which accepts
// both revisions over HTTP. Prints for 1 and for 16 calls in flight: the processor time of the gateway
// per call and its ratio to calls in which both sides use 2025-11-25, and the median and the 99th
// percentile of the latency, which includes client and server. Pairings alternate; of the rounds
// (default 5), medians.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const [program, fake, count = '8000', rounds = '5'] = process.argv.slice(2);
if (!fake) {
  console.error('usage: node revisions.mjs PROGRAM FAKE_MCP [calls] [rounds]');
  process.exit(2);
}
const calls = Number(count);
const OLD = '2025-11-25', NEW = '2026-07-28', PREFIX = 'io.modelcontextprotocol/';
const PAIRINGS = [[OLD, OLD], [NEW, NEW], [OLD, NEW], [NEW, OLD]];
const meta = { _meta: { [`${PREFIX}protocolVersion`]: NEW, [`${PREFIX}clientInfo`]: { name: 'bench', version: '1' }, [`${PREFIX}clientCapabilities`]: {} } };
const clientInfo = { name: 'bench', version: '1' };
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'bulkhead-revisions-'));
const env = (name) => ({ ...process.env, HOME: work, XDG_RUNTIME_DIR: work, XDG_CONFIG_HOME: work, XDG_STATE_HOME: path.join(work, name) });
const write = (name, profile) => {
  const file = path.join(work, name);
  fs.writeFileSync(file, JSON.stringify(profile));
  return file;
};

const upstream = spawn(program, ['serve', '--single-process', '--listen', '127.0.0.1:0', '--config',
  write('upstream.json', { mcpServers: { a: { command: fake, args: ['--tool', 'fast'], sandbox: 'off' } } })],
{ env: env('upstream'), cwd: work, stdio: ['ignore', 'ignore', 'pipe'] });
let said = '', url;
upstream.stderr.on('data', (data) => (said += data));
for (let i = 0; i < 1000 && !url; ++i) {
  url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(said)?.[0];
  await new Promise((done) => setTimeout(done, 10));
}

class Client {
  #waiting = new Map();
  #rest = '';
  #next = 0;
  constructor(config) {
    this.child = spawn(program, ['stdio', '--own', '--single-process', '--config', config], { env: env('gateway'), cwd: work, stdio: ['pipe', 'pipe', 'ignore'] });
    this.child.stdout.on('data', (data) => {
      const lines = (this.#rest + data).split('\n');
      this.#rest = lines.pop();
      for (const line of lines) {
        const id = Number(/"id":(\d+)/.exec(line)?.[1]);
        this.#waiting.get(id)?.(line);
        this.#waiting.delete(id);
      }
    });
  }
  send(message) {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }
  ask(method, params) {
    const id = ++this.#next;
    return new Promise((done) => {
      this.#waiting.set(id, done);
      this.send({ id, method, params });
    });
  }
  // Nanoseconds that the process has run.
  processorTime() {
    return Number(fs.readFileSync(`/proc/${this.child.pid}/schedstat`, 'utf8').split(' ')[0]);
  }
  async end() {
    this.child.stdin.end();
    await new Promise((done) => this.child.on('exit', done));
  }
}
const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
const ascending = (a, b) => a - b;

async function measure([revision, protocol], inFlight) {
  const client = new Client(write(`${protocol}.json`, { mcpServers: { h: { type: 'http', url, protocol } } }));
  if (revision === OLD) {
    await client.ask('initialize', { protocolVersion: OLD, capabilities: {}, clientInfo });
    client.send({ method: 'notifications/initialized' });
  }
  const more = revision === NEW ? meta : {};
  const { name } = JSON.parse(await client.ask('tools/list', more)).result.tools[0];
  const params = { name, arguments: { text: 'hello' }, ...more };
  async function make(some) {
    const times = [];
    let left = some;
    await Promise.all(Array.from({ length: inFlight }, async () => {
      while (left-- > 0) {
        const start = process.hrtime.bigint();
        const line = await client.ask('tools/call', params);
        times.push(Number(process.hrtime.bigint() - start) / 1000);
        if (line.includes('"error"')) throw new Error(line);
      }
    }));
    return times.sort(ascending);
  }
  await make(1000);
  const before = client.processorTime();
  const times = await make(calls);
  const used = (client.processorTime() - before) / 1000 / calls;
  await client.end();
  return { used, p50: at(times, 0.5), p99: at(times, 0.99) };
}

for (const inFlight of [1, 16]) {
  const got = PAIRINGS.map(() => []);
  for (let round = 0; round < Number(rounds); ++round) {
    for (const [i, pairing] of PAIRINGS.entries()) got[i].push(await measure(pairing, inFlight));
  }
  const median = (i, key) => at(got[i].map((one) => one[key]).sort(ascending), 0.5);
  PAIRINGS.forEach(([client, server], i) => console.log(`${inFlight} in flight, client ${client}, server ${server}: `
    + `${median(i, 'used').toFixed(1)} us of processor time (${(median(i, 'used') / median(0, 'used')).toFixed(2)}), `
    + `p50 ${median(i, 'p50').toFixed(0)} us, p99 ${median(i, 'p99').toFixed(0)} us`));
}
upstream.kill();
await new Promise((done) => upstream.on('exit', done));
fs.rmSync(work, { recursive: true, force: true });
