// Implements MCP clients over HTTP and stdio. They do not use an SDK, so tests see the raw bytes
// and can send invalid messages.
import { spawn } from 'node:child_process';
import http from 'node:http';
import { ended, patience } from './gateway.mjs';
import { member } from '../fixtures/raw_json.mjs';

const INFO = { name: 'bulkhead-tests', version: '1.0.0' };

export class RpcError extends Error {
  constructor(error) {
    super(`${error.code} ${error.message}`);
    this.code = error.code;
    this.data = error.data;
    this.error = error;
  }
}

// The base class of both clients: request IDs, notifications and responses to server-initiated
// requests.
class Client {
  constructor(options) {
    this.options = options;
    this.revision = options.revision ?? '2025-11-25';
    this.notes = []; // {method, params, raw, via}
    this.asks = []; // {method, params, raw, via}
    this.nextId = 1;
  }

  message(method, params, id) {
    const text = params === undefined ? '' : `,"params":${typeof params === 'string' ? params : JSON.stringify(params)}`;
    const idText = id === undefined ? '' : `,"id":${JSON.stringify(id)}`;
    return `{"jsonrpc":"2.0"${idText},"method":${JSON.stringify(method)}${text}}`;
  }

  async initialize() {
    const answer = await this.request('initialize', {
      protocolVersion: this.revision,
      capabilities: this.options.capabilities ?? {},
      clientInfo: this.options.clientInfo ?? INFO,
    });
    this.server = answer.result;
    this.negotiated = answer.result.protocolVersion;
    if (this.options.initialized !== false) await this.notify('notifications/initialized');
    return answer.result;
  }

  // Resolves with the parsed result. Rejects with an RpcError. `params` may be JSON text.
  async call(method, params, options) {
    return (await this.request(method, params, options)).result;
  }
  // Calls a tool. `args` may be JSON text.
  async tool(name, args = {}, options = {}) {
    const text = typeof args === 'string' ? args : JSON.stringify(args);
    const meta = options.meta ? `,"_meta":${JSON.stringify(options.meta)}` : '';
    return this.call('tools/call', `{"name":${JSON.stringify(name)},"arguments":${text}${meta}}`, options);
  }
  // Returns the tools on all pages.
  async tools() {
    return this.all('tools/list', 'tools');
  }
  async all(method, key) {
    const items = [];
    let cursor;
    do {
      const page = await this.call(method, cursor === undefined ? {} : { cursor });
      items.push(...page[key]);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return items;
  }
  async toolNames() {
    return (await this.tools()).map((tool) => tool.name);
  }
  // Waits for a notification that has not been returned before.
  async note(method, ms = 20_000) {
    const end = Date.now() + ms;
    for (;;) {
      const at = this.notes.findIndex((note) => note.method === method);
      if (at >= 0) return this.notes.splice(at, 1)[0];
      if (Date.now() > end) throw new Error(`no ${method} within ${ms} ms; got ${this.notes.map((n) => n.method)}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  // Handles a message that is not a response to a request of this client.
  async incoming(raw, via) {
    const method = JSON.parse(member(raw, 'method'));
    const id = member(raw, 'id');
    const paramsText = member(raw, 'params');
    const params = paramsText === undefined ? undefined : parseLoosely(paramsText);
    if (id === undefined) {
      this.notes.push({ method, params, raw, via });
      return;
    }
    this.asks.push({ method, params, raw, via });
    if (method === 'ping') return this.reply(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
    let body;
    try {
      const said = await this.options.onAsk?.(method, params, this);
      if (said === null) return; // sends no response
      body =
        said === undefined
          ? '"error":{"code":-32601,"message":"not supported by this client"}'
          : `"result":${typeof said === 'string' ? said : JSON.stringify(said)}`;
    } catch (error) {
      body = `"error":${JSON.stringify(error.error ?? { code: -1, message: error.message })}`;
    }
    await this.reply(`{"jsonrpc":"2.0","id":${id},${body}}`);
  }

  finished(raw, extra) {
    const error = member(raw, 'error');
    if (error !== undefined) throw Object.assign(new RpcError(parseLoosely(error)), { raw });
    const resultText = member(raw, 'result');
    return { raw, resultText, result: parseLoosely(resultText), ...extra };
  }
}

// JSON.parse accepts 1e400 (as Infinity) and duplicate keys. If it rejects a text, the sender is at
// fault.
function parseLoosely(text) {
  return JSON.parse(text);
}

export class HttpClient extends Client {
  constructor(url, options = {}) {
    super(options);
    this.url = new URL(url);
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 1024 });
    this.streams = new Set();
  }

  headers(extra = {}) {
    const headers = { accept: 'application/json, text/event-stream', ...this.options.headers };
    if (this.session) headers['mcp-session-id'] = this.session;
    if (this.negotiated && this.negotiated >= '2025-06-18') headers['mcp-protocol-version'] = this.negotiated;
    return { ...headers, ...extra };
  }

  // Sends an HTTP request. Returns {status, headers, body} with the complete body, or `res` itself
  // if `stream` is true.
  exchange(method, { body, headers, stream = false, path, signal } = {}) {
    return new Promise((resolve, reject) => {
      const req = http.request(
        {
          host: this.url.hostname,
          port: this.url.port,
          path: path ?? this.url.pathname,
          method,
          agent: this.agent,
          signal,
          headers: {
            ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
            ...headers,
          },
        },
        (res) => {
          if (stream) return resolve(res);
          const chunks = [];
          res.on('data', (chunk) => chunks.push(chunk));
          res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(chunks).toString() }));
          res.on('error', reject);
          return undefined;
        },
      );
      req.on('error', reject);
      req.end(body);
    });
  }

  async request(method, params, options = {}) {
    const id = options.id ?? this.nextId++;
    return this.send(this.message(method, params, id), id, options);
  }

  // Sends a request with POST and waits for the response with this ID.
  async send(body, id, options = {}) {
    const res = await this.exchange('POST', { body, headers: this.headers(options.headers), stream: true, signal: options.signal });
    const type = res.headers['content-type'] ?? '';
    if (type.startsWith('text/event-stream')) return this.#answerOnStream(res, id, options);
    const text = await readAll(res);
    if (!type.startsWith('application/json')) {
      throw Object.assign(new Error(`HTTP ${res.statusCode}: ${text.slice(0, 200)}`), { status: res.statusCode, body: text });
    }
    if (res.headers['mcp-session-id']) this.session = res.headers['mcp-session-id'];
    const got = member(text, 'id');
    if (got !== JSON.stringify(id)) {
      const error = member(text, 'error');
      if (got === undefined || got === 'null') {
        throw Object.assign(new RpcError(parseLoosely(error ?? '{}')), { status: res.statusCode, raw: text });
      }
      throw new Error(`an answer to ${got} instead of ${id}: ${text.slice(0, 300)}`);
    }
    try {
      return this.finished(text, { status: res.statusCode, headers: res.headers, via: 'json' });
    } catch (error) {
      throw Object.assign(error, { status: res.statusCode });
    }
  }

  async #answerOnStream(res, id, options) {
    if (res.headers['mcp-session-id']) this.session = res.headers['mcp-session-id'];
    const wanted = JSON.stringify(id);
    let last;
    const notes = [];
    for await (const event of events(res)) {
      if (event.id !== undefined) last = event.id;
      options.onEvent?.(event);
      if (!event.data) continue;
      if (member(event.data, 'id') === wanted && member(event.data, 'method') === undefined) {
        res.destroy();
        return this.finished(event.data, { status: res.statusCode, headers: res.headers, via: 'sse', notes, last });
      }
      const before = this.notes.length;
      const handled = this.incoming(event.data, 'post');
      notes.push(...this.notes.slice(before));
      handled.catch((error) => (this.failure = error));
    }
    if (options.resume !== false && last !== undefined) {
      const again = await this.exchange('GET', { headers: this.headers({ accept: 'text/event-stream', 'last-event-id': last }), stream: true });
      if (again.statusCode === 200) return this.#answerOnStream(again, id, { ...options, resume: options.resume === true });
    }
    throw Object.assign(new Error(`the stream ended without an answer to ${wanted}`), { last });
  }

  async notify(method, params) {
    return this.post(this.message(method, params));
  }
  async reply(text) {
    return this.post(text);
  }
  async post(body, headers) {
    const answer = await this.exchange('POST', { body, headers: this.headers(headers) });
    if (answer.status !== 202) throw Object.assign(new Error(`HTTP ${answer.status} instead of 202: ${answer.body}`), { status: answer.status });
    return answer;
  }

  // Opens the stream for messages that belong to no request. Resolves when the server has accepted
  // it.
  async listen(headers = {}) {
    const res = await this.exchange('GET', { headers: this.headers({ accept: 'text/event-stream', ...headers }), stream: true });
    if (res.statusCode !== 200) {
      const body = await readAll(res);
      throw Object.assign(new Error(`GET: HTTP ${res.statusCode} ${body}`), { status: res.statusCode });
    }
    this.streams.add(res);
    (async () => {
      for await (const event of events(res)) if (event.data) await this.incoming(event.data, 'get');
    })().catch((error) => (this.failure = error));
    return res;
  }

  async close() {
    if (this.closed) return;
    this.closed = true;
    for (const stream of this.streams) stream.destroy();
    if (this.session && !this.options.leaveOpen) {
      await this.exchange('DELETE', { headers: this.headers() }).catch(() => {});
    }
    this.agent.destroy();
  }
}

async function readAll(res) {
  const chunks = [];
  for await (const chunk of res) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

// Yields the events of an event stream as {event, id, retry, data} until the stream is closed or
// interrupted.
export async function* events(res) {
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const chunk of res) {
      text += decoder.decode(chunk, { stream: true });
      for (;;) {
        const end = /\r?\n\r?\n/.exec(text);
        if (!end) break;
        const block = text.slice(0, end.index);
        text = text.slice(end.index + end[0].length);
        const event = parseEvent(block);
        if (event) yield event;
      }
    }
  } catch (error) {
    if (error.code !== 'ECONNRESET' && error.code !== 'ERR_STREAM_PREMATURE_CLOSE' && error.name !== 'AbortError') throw error;
  }
}

function parseEvent(block) {
  const event = {};
  let any = false;
  for (const line of block.split(/\r?\n/)) {
    if (line === '' || line[0] === ':') continue;
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    any = true;
    if (field === 'data') event.data = event.data === undefined ? value : `${event.data}\n${value}`;
    else event[field] = value;
  }
  return any ? event : undefined;
}

export class StdioClient extends Client {
  constructor(command, args, spawnOptions = {}, options = spawnOptions) {
    super(options);
    this.stderr = '';
    this.lines = []; // all lines of standard output, unchanged
    this.waiting = new Map();
    this.child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env: spawnOptions.env, cwd: spawnOptions.cwd });
    this.exited = new Promise((resolve) => {
      ended(this.child).then((exit) => resolve((this.exit = exit)));
      this.child.on('error', (error) => resolve((this.exit = { error })));
    });
    this.exited.then((exit) => this.#fail(new Error(`the server has ended: ${JSON.stringify(exit)}\n${this.stderr.slice(-2000)}`)));
    this.child.stdin.on('error', () => {});
    this.child.stderr.on('data', (data) => (this.stderr += data));
    let text = '';
    const decoder = new TextDecoder();
    this.child.stdout.on('data', (data) => {
      text += decoder.decode(data, { stream: true });
      const lines = text.split('\n');
      text = lines.pop();
      for (const line of lines) this.#line(line);
    });
  }
  #fail(error) {
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }
  #line(line) {
    this.lines.push(line);
    if (line === '') return; // an empty line may terminate a line that a process of the gateway has left incomplete
    const id = member(line, 'id');
    if (member(line, 'method') !== undefined) {
      this.incoming(line, 'stdio').catch((error) => (this.failure = error));
      return;
    }
    const waiter = this.waiting.get(id);
    if (!waiter) return;
    this.waiting.delete(id);
    try {
      waiter.resolve(this.finished(line, { via: 'stdio' }));
    } catch (error) {
      waiter.reject(error);
    }
  }
  async request(method, params, options = {}) {
    const id = options.id ?? this.nextId++;
    return this.send(this.message(method, params, id), id);
  }
  send(text, id) {
    return new Promise((resolve, reject) => {
      if (this.exit) {
        reject(new Error(`the server has ended: ${JSON.stringify(this.exit)}\n${this.stderr.slice(-2000)}`));
        return;
      }
      this.waiting.set(JSON.stringify(id), { resolve, reject });
      this.write(text);
    });
  }
  write(text) {
    this.child.stdin.write(`${text}\n`);
  }
  async notify(method, params) {
    this.write(this.message(method, params));
  }
  async reply(text) {
    this.write(text);
  }
  // Closes standard input. The server must then exit by itself.
  async close(ms = 15_000 * patience) {
    if (this.exit) return this.exit;
    this.child.stdin.end();
    const timer = new Promise((resolve) => setTimeout(resolve, ms, 'late'));
    if ((await Promise.race([this.exited, timer])) === 'late') {
      this.child.kill('SIGKILL');
      throw new Error(`the server did not end within ${ms} ms of the end of its input`);
    }
    return this.exit;
  }
}
