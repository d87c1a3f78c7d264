// Connects the matrix's client to the gateway. A channel sends and receives texts. It knows nothing
// of MCP except what its transport requires:
//
//   channel.onText = (text) => ...       is called for every message, in order of arrival
//   send(text, message, headers)         resolves when the message was sent
//   abort(id)                            cancels a request by closing its stream; false: not possible
//   hear(headers)                        opens the stream for messages that belong to no request
//   close()
import { spawn } from 'node:child_process';
import http from 'node:http';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { events } from '../e2e/clients.mjs';
import { frame, metadata } from '../e2e/frames.mjs';

class Channel {
  onText = () => {};
  abort() {
    return false;
  }
  async hear() {}
}

export class Lines extends Channel {
  constructor(command, args, options) {
    super();
    this.stderr = '';
    this.child = spawn(command, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
    this.child.stdin.on('error', () => {});
    this.child.stderr.on('data', (data) => (this.stderr += data));
    this.ended = new Promise((resolve) => this.child.on('close', resolve));
    createInterface({ input: this.child.stdout }).on('line', (line) => line && this.onText(line));
  }
  async send(text) {
    this.child.stdin.write(`${text}\n`);
  }
  async close() {
    this.child.stdin.end();
    const late = setTimeout(() => this.child.kill('SIGKILL'), 8000);
    await this.ended;
    clearTimeout(late);
  }
}

export class Frames extends Channel {
  #stream = 0;
  #bytes = Buffer.alloc(0);
  constructor(path) {
    super();
    this.socket = connect(path);
    this.socket.on('error', () => {});
    this.socket.on('data', (data) => this.#take(data));
    this.socket.write(metadata());
    // A guest receives messages that belong to no request only after this notification.
    this.socket.write(frame(0, { jsonrpc: '2.0', method: 'notifications/bulkhead/duplex', params: { version: 1 } }));
  }
  async send(text, message) {
    const answered = [].concat(message).some((one) => one.method !== undefined && one.id !== undefined);
    this.socket.write(frame(answered ? ++this.#stream : 0, text));
  }
  async close() {
    this.socket.destroy();
  }
  #take(data) {
    this.#bytes = Buffer.concat([this.#bytes, data]);
    for (;;) {
      const end = this.#bytes.length < 20 ? Infinity : 4 + this.#bytes.readUInt32BE(0);
      if (this.#bytes.length < end) return;
      const payload = this.#bytes.subarray(20 + this.#bytes.readUInt16BE(14), end).toString();
      this.#bytes = this.#bytes.subarray(end);
      if (payload) this.onText(payload); // an empty frame means that a request is complete without a response
    }
  }
}

// The base class of both HTTP transports.
class Http extends Channel {
  constructor(url) {
    super();
    this.url = new URL(url);
    this.agent = new http.Agent({ keepAlive: true });
    this.open = new Set();
    this.requests = new Map(); // request ID -> its HTTP exchange
  }
  // Resolves with the response when its head has arrived.
  exchange(method, path, headers, body, id) {
    return new Promise((resolve, reject) => {
      const type = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const { hostname, port } = this.url;
      const req = http.request({ host: hostname, port, path, method, agent: this.agent, headers: { ...type, ...headers } }, resolve);
      req.on('error', reject);
      req.on('close', () => {
        this.open.delete(req);
        this.requests.delete(id);
      });
      this.open.add(req);
      if (id !== undefined) this.requests.set(id, req);
      req.end(body);
    });
  }
  async read(res) {
    try {
      for await (const { data } of events(res)) if (data) this.onText(data);
    } catch (error) {
      if (!this.closed) throw error;
    }
  }
  async close() {
    this.closed = true;
    for (const req of this.open) req.destroy();
    this.agent.destroy();
  }
}
async function textOf(res) {
  let text = '';
  for await (const chunk of res) text += chunk;
  return text;
}

export class Streamable extends Http {
  statuses = []; // of POST requests with a JSON response: {status, text}
  async send(text, message, headers) {
    const all = { accept: 'application/json, text/event-stream', ...this.#session(), ...headers };
    const res = await this.exchange('POST', this.url.pathname, all, text, message.method && message.id);
    this.session ??= res.headers['mcp-session-id'];
    if (!(res.headers['content-type'] ?? '').startsWith('text/event-stream')) {
      const body = await textOf(res);
      this.statuses.push({ status: res.statusCode, text: body });
      if (body.startsWith('{') || body.startsWith('[')) this.onText(body);
      else if (res.statusCode >= 300) throw new Error(`HTTP ${res.statusCode} ${body}`);
      return;
    }
    this.read(res).catch(() => {});
  }
  abort(id) {
    const req = this.requests.get(id);
    req?.destroy();
    return req !== undefined;
  }
  async hear(headers) {
    const res = await this.exchange('GET', this.url.pathname, { accept: 'text/event-stream', ...this.#session(), ...headers });
    if (res.statusCode !== 200) throw new Error(`GET: HTTP ${res.statusCode} ${await textOf(res)}`);
    this.read(res).catch(() => {});
  }
  async close() {
    if (this.session) await this.exchange('DELETE', this.url.pathname, this.#session()).catch(() => {});
    await super.close();
  }
  #session() {
    return this.session ? { 'mcp-session-id': this.session } : {};
  }
}

// HTTP+SSE of 2024-11-05: all messages arrive on the stream of one GET request.
export class OldHttp extends Http {
  async hear() {}
  async send(text) {
    this.endpoint ??= this.#connect();
    const res = await this.exchange('POST', await this.endpoint, {}, text);
    const body = await textOf(res);
    if (res.statusCode !== 202) throw new Error(`HTTP ${res.statusCode} ${body}`);
  }
  async #connect() {
    const res = await this.exchange('GET', '/sse', { accept: 'text/event-stream' });
    if (res.statusCode !== 200) throw new Error(`GET /sse: HTTP ${res.statusCode}`);
    return new Promise((resolve) => {
      (async () => {
        for await (const { event, data } of events(res)) {
          if (event === 'endpoint') resolve(data);
          else if (data) this.onText(data);
        }
      })().catch(() => {});
    });
  }
}
