// node parked_calls.mjs PROGRAM [calls] [argument bytes]: measures the memory of a parked call: a call
// of an MCP 2026-07-28 client whose server uses an older revision and asks for input during the call.
//
// Parks `calls` calls (default 120; a client can have 128) and prints the resident memory of the
// gateway before and after, and per call. As many calls are made and answered one by one first, so that
// memory that does not depend on parked calls is not counted.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';

const [program, count = '120', bytes = '100'] = process.argv.slice(2);
if (!program) {
  console.error('usage: node parked_calls.mjs PROGRAM [calls] [argument bytes]');
  process.exit(2);
}
const calls = Number(count);
const PREFIX = 'io.modelcontextprotocol/';
const meta = { [`${PREFIX}protocolVersion`]: '2026-07-28', [`${PREFIX}clientInfo`]: { name: 'bench', version: '1' },
  [`${PREFIX}clientCapabilities`]: { elicitation: { form: {} } } };
const elicitation = { method: 'elicitation/create',
  params: { message: 'Continue?', requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } } } };

// Calls that wait for the answer to an elicitation, by the id of the elicitation.
const waiting = new Map();
const upstream = http.createServer((request, response) => {
  let text = '';
  request.on('data', (data) => (text += data)).on('end', () => {
    if (request.method !== 'POST') return response.writeHead(405).end();
    const { id, method, result } = JSON.parse(text);
    const reply = (value) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: value }));
    };
    if (method === 'initialize') return reply({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } });
    if (method === 'tools/list') return reply({ tools: [{ name: 'ask', inputSchema: { type: 'object' } }] });
    if (method === 'tools/call') {
      const key = `q${id}`;
      waiting.set(key, { id, response });
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: key, ...elicitation })}\n\n`);
    }
    if (method === undefined && waiting.has(id)) {
      const call = waiting.get(id);
      waiting.delete(id);
      call.response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: call.id, result: { content: [{ type: 'text', text: JSON.stringify(result) }] } })}\n\n`);
    }
    return response.writeHead(202).end();
  });
});
await new Promise((done) => upstream.listen(0, '127.0.0.1', done));

const work = fs.mkdtempSync(path.join(os.tmpdir(), 'bulkhead-parked-'));
const config = path.join(work, 'gateway.json');
fs.writeFileSync(config, JSON.stringify({ limits: { ask_timeout_ms: 600_000, asks_per_session: calls + 1 },
  mcpServers: { s: { type: 'http', url: `http://127.0.0.1:${upstream.address().port}/mcp` } } }));
const env = { ...process.env, HOME: work, XDG_STATE_HOME: work, XDG_RUNTIME_DIR: work };
const child = spawn(program, ['serve', '--single-process', '--config', config, '--listen', '127.0.0.1:0'], { env, cwd: work, stdio: ['ignore', 'ignore', 'pipe'] });
let said = '', url;
child.stderr.on('data', (data) => (said += data));
for (let i = 0; i < 1000 && !url; ++i) {
  url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(said)?.[0];
  await new Promise((done) => setTimeout(done, 10));
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
let next = 0;
function send(method, params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: ++next, method, params: { ...params, _meta: meta } });
  return new Promise((resolve, reject) => {
    const req = http.request(url, { method: 'POST', agent, headers: { accept: 'application/json, text/event-stream',
      'content-type': 'application/json', 'content-length': Buffer.byteLength(body), 'mcp-protocol-version': '2026-07-28',
      'mcp-method': method, ...(params.name ? { 'mcp-name': params.name } : {}) } }, (res) => {
      let text = '';
      res.on('data', (chunk) => (text += chunk));
      res.on('end', () => resolve(JSON.parse(res.headers['content-type'].startsWith('text/event-stream') ? /^data: (\{.*)$/m.exec(text)[1] : text)));
    });
    req.on('error', reject);
    req.end(body);
  });
}
const tool = (await send('tools/list', {})).result.tools[0].name;
const argumentsOf = (n) => ({ n, text: 'x'.repeat(Number(bytes)) });
async function park(from, some) {
  const parked = [];
  for (let n = from; n < from + some; ++n) {
    const { result, error } = await send('tools/call', { name: tool, arguments: argumentsOf(n) });
    if (result?.resultType !== 'input_required') throw new Error(JSON.stringify(error ?? result));
    parked.push({ n, result });
  }
  return parked;
}
async function answer(parked) {
  for (const { n, result } of parked) {
    const inputResponses = Object.fromEntries(Object.keys(result.inputRequests).map((key) => [key, { action: 'accept', content: { ok: true } }]));
    const end = await send('tools/call', { name: tool, arguments: argumentsOf(n), inputResponses, requestState: result.requestState });
    if (end.result?.resultType !== 'complete') throw new Error(JSON.stringify(end));
  }
}
const memory = () => Number(/^Rss:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${child.pid}/smaps_rollup`, 'utf8'))[1]);

for (let n = 0; n < calls; ++n) await answer(await park(n, 1));
const before = memory();
const parked = await park(calls, calls);
const after = memory();
console.log(`${calls} parked calls with ${bytes} bytes of text: ${before} KiB before, ${after} KiB after, ${((after - before) / calls).toFixed(1)} KiB per call`);
await answer(parked);
console.log(`answered: ${memory()} KiB`);
child.kill();
upstream.closeAllConnections();
upstream.close();
await new Promise((done) => child.on('exit', done));
fs.rmSync(work, { recursive: true, force: true });
