// Sends large calls to a gateway beside a client that sends pings, and measures the delays of the
// pings and the memory of the gateway. Used by large_messages.mjs and bench/large_messages.mjs.
//
// Run as a program, it is one of the senders: node large_load.mjs URL TOOL KIND MEGABYTES.
import { spawn } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import http from 'node:http';
import { fileURLToPath } from 'node:url';

const SENDERS = 3;
const PERIOD_MS = 10; // a ping is sent after each period, whether the earlier ones have been answered or not
const RESULT = /"result"/;

const element = '{"k":"0123456789abcdef","n":12345},';
const members = (bytes) => Array.from({ length: Math.floor(bytes / 15) }, (_, i) => `"m${String(i).padStart(8, '0')}":12`).join(',');
// Returns the JSON text of a value of about this size.
export const payloads = {
  values: (bytes) => `[${element.repeat(Math.floor(bytes / element.length))}0]`,
  members: (bytes) => `{${members(bytes)}}`,
  // One name must be decoded before it can be compared with all others.
  escaped: (bytes) => `{"n\\u0061me":12,${members(bytes)}}`,
  none: () => '0',
};
// Returns an upper bound of the number of values in such a payload.
export const valuesIn = (bytes) => Math.ceil(bytes / element.length) * 3 + 2;

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
async function connect(url) {
  const agent = new http.Agent({ keepAlive: true });
  const first = await post(url, JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25',
    capabilities: {}, clientInfo: { name: 'load', version: '1' } } }), {}, agent);
  const headers = { 'mcp-session-id': first.session, 'mcp-protocol-version': '2025-11-25' };
  await post(url, '{"jsonrpc":"2.0","method":"notifications/initialized"}', headers, agent);
  return { agent, send: (body) => post(url, body, headers, agent) };
}

// Starts the senders. Each sends calls one after another: the argument `v` is a payload of this
// kind and size. The senders are separate processes, so that their work does not delay the pings.
function startSenders(url, { tool, kind, megabytes }) {
  const file = fileURLToPath(import.meta.url);
  return Array.from({ length: SENDERS }, () => {
    const child = spawn(process.execPath, ['--no-warnings', file, url, tool, kind, String(megabytes)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const sender = { child, text: '' };
    child.stdout.on('data', (data) => (sender.text += data));
    return sender;
  });
}

// Sends pings beside the senders. Returns the delays in ms (median, p99, max), the number of calls
// with a result, the other calls, and the number of pings and of pings without a response. Calls
// `look` several times per second.
export async function measureDelays(url, call, { seconds = 20, look = () => {} } = {}) {
  const senders = startSenders(url, call);
  const pinger = await connect(url);
  const delays = [];
  let open = 0, failed = 0, id = 0;
  // The senders need some time to create their payloads.
  await until(() => senders.every(({ text }) => text.startsWith('ready')), 30_000);
  const end = performance.now() + seconds * 1000;
  let next = performance.now();
  while (performance.now() < end) {
    const begin = performance.now();
    ++open;
    pinger.send(`{"jsonrpc":"2.0","id":${++id},"method":"ping"}`)
      .then(({ text }) => (RESULT.test(text) ? delays.push(performance.now() - begin) : ++failed), () => ++failed)
      .finally(() => --open);
    if (id % 20 === 0) look();
    next += PERIOD_MS;
    await new Promise((done) => setTimeout(done, Math.max(0, next - performance.now())));
  }
  await until(() => open === 0, 30_000);
  look();
  senders.forEach(({ child }) => child.kill());
  pinger.agent.destroy();
  delays.sort((a, b) => a - b);
  const lines = senders.flatMap(({ text }) => text.split('\n'));
  const refused = lines.filter((line) => line.startsWith('refused'));
  return { median: delays[delays.length >> 1], p99: delays[Math.floor(delays.length * 0.99)], max: delays.at(-1),
    calls: lines.filter((line) => line === 'ok').length, refused, pings: id, lost: open + failed };
}
async function until(probe, ms) {
  for (const end = Date.now() + ms; !probe() && Date.now() < end;) await new Promise((done) => setTimeout(done, 10));
}

// Returns a line of /proc/PID/status in MiB. 0 if the process has exited.
export function statusMiB(pid, line) {
  try {
    return Number(new RegExp(`^${line}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}
export const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [url, tool, kind, megabytes] = process.argv.slice(2);
  const payload = payloads[kind](Number(megabytes) * 1e6);
  const sender = await connect(url);
  console.log('ready');
  for (let id = 1; id < 1000; ++id) {
    const { text } = await sender.send(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${tool}","arguments":{"v":${payload}}}}`);
    console.log(RESULT.test(text) ? 'ok' : `refused ${text.slice(0, 200)}`);
  }
}
