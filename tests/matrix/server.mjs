// A server that supports one revision, implemented from the specification without an SDK.
// content.mjs defines what it offers. It rejects everything that its revision does not permit.
//
//   server.mjs REVISION stdio|http [LOG]     (http: prints its URL)
//
// REVISION may be @FILE, a file that contains it: such a server can be upgraded or downgraded by a
// restart. LOG is a file for all messages: "< " received, "> " sent. The HTTP transport of
// 2024-11-05 is HTTP+SSE.
import { appendFileSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { RpcFailure, World, answer, capabilities, since } from './content.mjs';
import { StatelessServer } from './stateless_server.mjs';

const [, , given, transport, logFile] = process.argv;
const revision = given.startsWith('@') ? readFileSync(given.slice(1), 'utf8').trim() : given;
const world = new World();
const log = (mark, text) => logFile && appendFileSync(logFile, `${mark} ${text}\n`);
const info = { name: 'matrix', version: '1' };
const failure = (id, code, message) => ({ jsonrpc: '2.0', id, error: { code, message } });

// A session. `push` sends messages that belong to no request. respond(message, reply) sends all
// messages that belong to a request through `reply`.
class Session {
  static all = new Set();
  #pending = new Map();
  #cancels = new Map();
  #watched = new Set();
  #level = 'debug';
  #asked = 0;
  #ready = false;
  constructor(push) {
    this.push = push;
    Session.all.add(this);
  }
  end() {
    Session.all.delete(this);
  }
  // Resolves when the response was sent.
  async respond(message, reply) {
    if (message.method === undefined) return this.#answered(message);
    if (message.id === undefined) return this.#notified(message);
    try {
      const result = await this.#result(message, reply);
      reply({ jsonrpc: '2.0', id: message.id, result });
    } catch (error) {
      reply(failure(message.id, error.body?.code ?? -32603, error.message));
    }
    return undefined;
  }
  #answered({ id, result, error }) {
    const waiter = this.#pending.get(id);
    this.#pending.delete(id);
    if (error) waiter?.reject(new Error(`the client answered ${JSON.stringify(error)}`));
    else waiter?.resolve(result);
  }
  #notified({ method, params }) {
    if (method === 'notifications/cancelled') this.#cancels.get(params.requestId)?.();
    if (method === 'notifications/initialized') this.#ready = true;
  }
  async #result({ id, method, params = {} }, reply) {
    if (method === 'initialize') {
      this.client = params.capabilities;
      return { protocolVersion: revision, capabilities: capabilities(revision), serverInfo: info };
    }
    if (method === 'ping') return {};
    if (!this.#ready) throw new RpcFailure(-32600, 'not initialized');
    if (method === 'logging/setLevel') this.#level = params.level;
    else if (method === 'resources/subscribe') this.#watched.add(params.uri);
    else if (method === 'resources/unsubscribe') this.#watched.delete(params.uri);
    else if (method.startsWith('tasks/') && revision === '2025-11-25') return this.#task(method, params);
    else {
      const cancelled = new Promise((resolve) => this.#cancels.set(id, resolve));
      const result = await answer(revision, world, method, params, this.#io(params, reply, cancelled));
      this.#cancels.delete(id);
      if (result === undefined) throw new RpcFailure(-32601, `no such method: ${method}`);
      return result;
    }
    return {};
  }
  async #task(method, { taskId }) {
    const task = world.task(taskId);
    const { result, ...fields } = task;
    const shown = { ...fields, ttl: 60_000, pollInterval: 20 };
    if (method === 'tasks/get') return shown;
    if (method === 'tasks/cancel') return { ...shown, status: (task.status = 'cancelled') };
    if (method !== 'tasks/result') throw new RpcFailure(-32601, `no such method: ${method}`);
    return { ...result, _meta: { 'io.modelcontextprotocol/related-task': { taskId } } };
  }
  #io({ _meta: meta, task: wanted }, reply, cancelled) {
    const note = (method, params) => reply({ jsonrpc: '2.0', method, params });
    const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
    return {
      cancelled,
      task: (run) => {
        if (!wanted || revision !== '2025-11-25') return run();
        return { task: { ...world.start(run), ttl: 60_000, pollInterval: 20 } };
      },
      declares: (name, part) => (part ? this.client[name]?.[part] : this.client[name]) !== undefined,
      ask: (_, method, params) => new Promise((resolve, reject) => {
        const id = `ask-${++this.#asked}`;
        this.#pending.set(id, { resolve, reject });
        reply({ jsonrpc: '2.0', id, method, params });
      }),
      progress: (progress, total) => {
        const progressToken = meta?.progressToken;
        if (progressToken !== undefined) note('notifications/progress', { progressToken, progress, total });
      },
      log: (level, data) => {
        if (levels.indexOf(level) >= levels.indexOf(this.#level)) note('notifications/message', { level, data });
      },
      changed: (kind) => {
        for (const session of Session.all) session.push({ jsonrpc: '2.0', method: `notifications/${kind}/list_changed` });
      },
      updated: (uri) => {
        for (const session of Session.all) {
          if (session.#watched.has(uri)) session.push({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } });
        }
      },
    };
  }
}

function serveLines() {
  const write = (message) => {
    const line = JSON.stringify(message);
    log('>', line);
    process.stdout.write(`${line}\n`);
  };
  const server = since(revision, '2026-07-28') ? new StatelessServer(world) : new Session(write);
  createInterface({ input: process.stdin }).on('line', (line) => {
    log('<', line);
    const message = JSON.parse(line);
    if (!Array.isArray(message)) server.respond(message, write);
    else for (const one of message) server.respond(one, write);
  }).on('close', () => process.exit(0));
}

const SSE = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' };
const logged = (message) => {
  const text = JSON.stringify(message);
  log('>', text);
  return text;
};
const event = (message) => `event: message\ndata: ${logged(message)}\n\n`;
async function bodyOf(req) {
  let body = '';
  for await (const chunk of req.setEncoding('utf8')) body += chunk;
  if (body) log('<', body);
  return body;
}
// Responds to a POST request. The response is JSON if the first message is also the last, otherwise
// an event stream.
async function exchange(res, message, headers, respond) {
  let streaming = false;
  await respond((reply) => {
    const { status = 200, body: sent = reply } = reply;
    const last = sent.method === undefined;
    if (last && !streaming) {
      res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(logged(sent));
      return;
    }
    if (!streaming) res.writeHead(200, { ...SSE, ...headers });
    streaming = true;
    res.write(event(sent));
    if (last) res.end();
  });
  if (!res.headersSent) res.writeHead(202, headers).end();
}

class StreamableHttp {
  #sessions = new Map();
  async handle(req, res) {
    const body = await bodyOf(req);
    const message = body && JSON.parse(body);
    let session = this.#sessions.get(req.headers['mcp-session-id']);
    if (message?.method === 'initialize') session = this.#open();
    if (!session) return res.writeHead(req.headers['mcp-session-id'] ? 404 : 400).end('no such session');
    const version = req.headers['mcp-protocol-version'];
    if (message?.method !== 'initialize' && since(revision, '2025-06-18') && version !== revision) {
      return res.writeHead(400).end(`MCP-Protocol-Version: ${version}`);
    }
    if (req.method === 'GET') return this.#stream(session, res);
    if (req.method === 'DELETE') {
      session.end();
      this.#sessions.delete(req.headers['mcp-session-id']);
      return res.writeHead(200).end();
    }
    return exchange(res, message, { 'mcp-session-id': session.id }, (reply) => session.respond(message, reply));
  }
  #open() {
    const session = new Session((message) => session.stream?.write(event(message)));
    session.id = randomUUID();
    this.#sessions.set(session.id, session);
    return session;
  }
  #stream(session, res) {
    res.writeHead(200, SSE).flushHeaders();
    session.stream = res;
  }
}

class OldHttp {
  #sessions = new Map();
  async handle(req, res, url) {
    if (req.method === 'GET') {
      const id = randomUUID();
      const session = new Session((message) => res.write(event(message)));
      this.#sessions.set(id, session);
      res.on('close', () => session.end());
      res.writeHead(200, SSE).write(`event: endpoint\ndata: /post?session=${id}\n\n`);
      return;
    }
    const session = this.#sessions.get(url.searchParams.get('session'));
    if (url.pathname !== '/post' || !session) return void res.writeHead(405).end();
    const message = JSON.parse(await bodyOf(req));
    res.writeHead(202).end();
    session.respond(message, session.push);
  }
}

class StatelessHttp {
  #server = new StatelessServer(world);
  async handle(req, res) {
    if (req.method !== 'POST') return res.writeHead(405).end();
    const message = JSON.parse(await bodyOf(req));
    const gone = new Promise((resolve) => res.on('close', resolve));
    return exchange(res, message, {}, (reply) => this.#server.respond(message, reply, { headers: req.headers, gone }));
  }
}

async function serveHttp() {
  const Kind = since(revision, '2026-07-28') ? StatelessHttp : since(revision, '2025-03-26') ? StreamableHttp : OldHttp;
  const handler = new Kind();
  const server = http.createServer((req, res) => {
    res.on('error', () => {});
    Promise.resolve(handler.handle(req, res, new URL(req.url, 'http://x'))).catch((error) => {
      if (res.headersSent) res.destroy();
      else res.writeHead(400).end(String(error));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  console.log(`http://127.0.0.1:${server.address().port}${Kind === OldHttp ? '/sse' : '/mcp'}`);
}

if (transport === 'stdio') serveLines();
else await serveHttp();
