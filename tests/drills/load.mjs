// Generates load and checks every call: each call has a unique text and must get exactly one
// response in time. The logs of the upstream servers show how often each call was executed.
import http from 'node:http';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fake, sleep } from '../e2e/lib.mjs';
import { HttpClient } from '../e2e/clients.mjs';

export class Load {
  results = 0;
  errors = new Map(); // error -> count
  handshakes = 0;
  lost = 0; // sessions that the gateway has lost
  notes = 0; // number of received notifications
  slowest = 0; // ms
  wrong = []; // results that no fault explains
  done = new Map(); // text of a call -> whether it has a result
  #stop = false;
  #running = [];
  #serial = 0;

  // tools: {name, arguments(call), counted: the server logs the call, good: checks the response}.
  // Without `good`, a response must contain the text of its call. A call must complete within
  // `deadline` ms. session_calls: calls per session. pause: ms between calls. streams: each session
  // opens a stream for messages that belong to no request. client: one client for all calls,
  // instead of HTTP clients. first: number of the first call.
  constructor(url, tools, deadline, random, { session_calls = Infinity, pause = 0, streams = false, client, first = 0 } = {}) {
    Object.assign(this, { url, tools, deadline, random, session_calls, pause, streams, client });
    this.#serial = first;
  }

  start(count) {
    this.#stop = false;
    this.#running = Array.from({ length: count }, () => this.#client());
  }
  // Stops each client after its current call.
  async stop() {
    this.#stop = true;
    await Promise.all(this.#running);
  }

  async #client() {
    let client;
    let calls = 0;
    while (!this.#stop) {
      client ??= await this.#handshake();
      if (!client) continue;
      const tool = this.tools[Math.floor(this.random() * this.tools.length)];
      if (await this.#sessionLost(client, tool)) {
        client.agent?.destroy();
        client = undefined;
      } else if (++calls % this.session_calls === 0) {
        await this.#leave(client);
        client = undefined;
      }
      if (this.pause) await sleep(this.pause);
    }
    if (client) await this.#leave(client);
  }
  async #leave(client) {
    if (this.client) return;
    this.notes += client.notes.length;
    await client.close();
  }

  async #handshake() {
    if (this.client) return this.client;
    const client = new HttpClient(this.url);
    try {
      await client.initialize();
      if (this.streams) await Promise.all([client.listen(), client.tools()]); // list_changed is sent only to a client that has listed tools
      ++this.handshakes;
      return client;
    } catch (error) {
      client.agent.destroy();
      this.#count(`initialize: ${kindOf(error)}`);
      await sleep(20);
      return undefined;
    }
  }

  // Makes a call. Returns true if the session was lost.
  async #sessionLost(client, tool) {
    const call = `call-${++this.#serial}-`;
    const started = performance.now();
    const late = AbortSignal.timeout(this.deadline);
    if (tool.counted) this.done.set(call, false);
    try {
      const answer = await inTime(client.tool(tool.name, tool.arguments(call), { signal: late }), late);
      const text = JSON.stringify(answer);
      if (answer.isError) {
        this.#count(`isError: ${text.replace(/[a-z]*\d+-?/g, 'N').slice(0, 120)}`);
      } else {
        if (!text.includes(tool.good ?? call)) this.wrong.push(`${call} of ${tool.name} got ${text.slice(0, 200)}`);
        if (tool.counted) this.done.set(call, true);
        ++this.results;
      }
      return false;
    } catch (error) {
      if (late.aborted) this.wrong.push(`${call} of ${tool.name} has no answer after ${this.deadline} ms`);
      this.#count(kindOf(error));
      await sleep(10);
      if (error.status !== 404) return false;
      ++this.lost;
      return true;
    } finally {
      this.slowest = Math.max(this.slowest, performance.now() - started);
    }
  }
  #count(what) {
    this.errors.set(what, (this.errors.get(what) ?? 0) + 1);
  }

  // Returns the calls that were executed more than once, and those with a result that were never
  // executed. `records` contains the text of each execution.
  misdeeds(records) {
    const times = new Map();
    for (const text of records) {
      const call = /call-\d+-/.exec(text)?.[0];
      if (call) times.set(call, (times.get(call) ?? 0) + 1);
    }
    const found = [];
    for (const [call, count] of times) if (count > 1) found.push(`${call} was carried out ${count} times`);
    for (const [call, answered] of this.done) {
      if (answered && !times.has(call)) found.push(`${call} was answered and never carried out`);
    }
    return found;
  }
  report() {
    const errors = [...this.errors].sort((a, b) => b[1] - a[1]);
    return [
      `${this.results} results, ${errors.reduce((sum, [, count]) => sum + count, 0)} errors, ${this.handshakes} handshakes, ${this.lost} sessions lost, slowest ${this.slowest.toFixed(0)} ms`,
      ...errors.slice(0, 25).map(([what, count]) => `  ${count} x ${what}`),
    ].join('\n    ');
  }
}

// Not every client supports an AbortSignal, so the signal is also awaited here.
function inTime(answer, signal) {
  const late = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  return Promise.race([answer, late]);
}

function kindOf(error) {
  const http_status = error.status === undefined || error.status === 200 ? '' : `HTTP ${error.status} `;
  if (error.error) return `${http_status}${error.message.replace(/[a-z]*\d+-?/g, 'N').slice(0, 110)}`;
  return http_status || (error.code ?? error.message.slice(0, 60));
}

// Returns the calls in the log of fake_mcp.
export function callsIn(log) {
  let text = '';
  try {
    text = readFileSync(log, 'utf8');
  } catch {
    // the server has not been started
  }
  return text.split('\n').filter((line) => line.startsWith('< ') && line.includes('"tools/call"'));
}

// Serves pages for builtin-http. Each page contains its own path. Requested paths are recorded.
async function pages() {
  const asked = [];
  const server = http.createServer((req, res) => {
    asked.push(req.url);
    res.writeHead(200, { 'content-type': 'text/plain' }).end(`this is ${req.url}`);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { asked, stop, disconnect: () => server.closeAllConnections(), url: `http://127.0.0.1:${server.address().port}` };
}

// Returns servers and plugins for a profile, one in each compartment, and the data that Load needs.
// There are two stdio servers and two HTTP servers. `name` identifies the processes of the servers.
// keep: record calls.
export async function everyCompartment(t, name, { keep = true } = {}) {
  const logs = [t.path('log0'), t.path('log1')];
  const webs = [await t.fakeHttp(), await t.fakeHttp()];
  const site = await pages();
  t.defer(() => site.stop());
  const folder = t.path('workspace');
  mkdirSync(folder);
  writeFileSync(`${folder}/a.txt`, 'what the file says');
  const plugins = { files: { plugin: 'builtin-files', path: folder }, fetch: { plugin: 'builtin-http', allow_private: true } };
  const mcpServers = {};
  const tools = [
    { name: 'fetch__fetch_http', arguments: (call) => ({ url: `${site.url}/${call}` }), counted: true },
    { name: 'files__file_read', arguments: () => ({ path: 'a.txt' }), good: 'what the file says' },
  ];
  logs.forEach((log, i) => {
    mcpServers[`up${i}`] = fake('--tool', 'slow', '--tool', 'quick', '--delay', 'slow=30', '--name', name, ...(keep ? ['--log', log] : []));
    for (const tool of ['slow', 'quick']) tools.push({ name: `up${i}__${tool}`, arguments: (call) => ({ call }), counted: true });
  });
  webs.forEach((web, i) => {
    mcpServers[`web${i}`] = { url: web.url };
    for (const tool of ['slow', 'echo', 'echo_sse']) tools.push({ name: `web${i}__${tool}`, arguments: (call) => ({ call, ms: 30 }), counted: true });
  });
  const records = () => [
    ...logs.flatMap(callsIn),
    ...webs.flatMap((web) => web.messages('tools/call').map(({ raw }) => raw)),
    ...site.asked,
  ];
  const forget = () => {
    for (const web of webs) web.requests.length = 0;
    site.asked.length = 0;
  };
  // Closes all connections to the HTTP servers and to the site.
  const disconnect = async () => {
    site.disconnect();
    for (const web of webs) {
      await web.stop();
      await web.listen(web.port);
    }
  };
  return { mcpServers, plugins, tools, webs, records, forget, disconnect };
}
