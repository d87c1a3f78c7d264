// Implements a client for each revision from the specification, without an SDK. The classes have
// the same interface, so that a feature needs only one function for all revisions:
//
//   await open()                      performs the handshake; this.server has the server's capabilities
//   await call(method, params, {token})  returns the final result or throws RpcError; responds to
//                                     requests of the server
//   start(method, params)             does not wait; returns {id, done}
//   await setLevel(level)             sets the log level of the session, or of all later requests
//   await watch({kinds, uris})        subscribes to list_changed of these kinds and updates of these URIs
//   await cancel(id)
//   await task(name, args, cancel)    calls a tool as a task; returns {status, result} of the task
//   batch(requests)                   sends {method, params} in an array; returns promises
//   notes                             received {method, params}, in order of arrival
//   asked                             {method, params} of all server-initiated requests
import { CheckedWire } from '../fixtures/schema_check.mjs';
import { RpcError } from '../e2e/clients.mjs';
import { until } from '../e2e/harness.mjs';
import { TASKS } from './content.mjs';

const INFO = { name: 'matrix-client', version: '1' };
const META = 'io.modelcontextprotocol/';
const SUBSCRIPTION = `${META}subscriptionId`;
const KINDS = ['tools', 'prompts', 'resources'];

class Client {
  #waiting = new Map(); // id -> {resolve, reject}
  #nextId = 1;
  notes = [];
  asked = [];
  anonymous = []; // errors without an ID
  // answers: method -> result of server-initiated requests
  constructor(revision, channel, check, { capabilities, answers }) {
    Object.assign(this, { revision, channel, capabilities, answers, wire: new CheckedWire(check) });
    channel.onText = (text) => this.#received(text);
  }
  get errors() {
    return this.wire.errors.filter((error) => error.startsWith('received'));
  }
  forgetErrors() {
    this.wire.errors.length = 0;
  }
  // Returns the HTTP headers that a client of this revision sends with a message.
  headers() {
    return {};
  }
  async send(message) {
    const text = JSON.stringify(message);
    this.wire.sent(text);
    await this.channel.send(text, message, this.headers([].concat(message)[0]));
  }
  // Returns the ID and a promise of the first response.
  post(method, params) {
    const { id, done, message } = this.#request(method, params);
    this.send(message).catch((error) => this.#waiting.get(id)?.reject(error));
    return { id, done };
  }
  batch(requests) {
    const all = requests.map(({ method, params }) => this.#request(method, params));
    this.send(all.map(({ message }) => message)).catch((error) => all.forEach(({ id }) => this.#waiting.get(id)?.reject(error)));
    return all.map(({ done }) => done);
  }
  #request(method, params) {
    const id = this.#nextId++;
    const done = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    done.catch(() => {});
    return { id, done, message: { jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) } };
  }
  async call(method, params = {}, options = {}) {
    return this.start(method, params, options).done;
  }
  // Returns the items of all pages, and the number of pages.
  async list(method, key) {
    const items = [];
    let pages = 0;
    for (let cursor; ;) {
      const page = await this.call(method, cursor === undefined ? {} : { cursor });
      items.push(...page[key]);
      ++pages;
      cursor = page.nextCursor;
      if (cursor === undefined) return { items, pages };
    }
  }
  // Polls a task until it is complete.
  ended(taskId) {
    return until('the task ends', async () => {
      const task = await this.call('tasks/get', { taskId });
      return task.status !== 'working' && task;
    }, 20_000);
  }
  notesOf(method) {
    return this.notes.filter((note) => note.method === method).map(({ params }) => params);
  }
  note(method, test = () => true) {
    return until(`${method} (got ${this.notes.map((note) => note.method)})`, () => this.notesOf(method).find(test), 20_000);
  }
  async close() {
    await this.channel.close();
  }
  #received(text) {
    this.wire.received(text);
    const parsed = JSON.parse(text);
    for (const message of Array.isArray(parsed) ? parsed : [parsed]) this.#take(message);
  }
  #take(message) {
    const { id, method, params, result, error } = message;
    if (method !== undefined && id === undefined) {
      this.onNote(message);
      return void this.notes.push({ method, params });
    }
    if (method !== undefined) return void this.onAsk(message);
    const waiter = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error && (id === undefined || id === null)) this.anonymous.push(error);
    if (error) waiter?.reject(new RpcError(error));
    else waiter?.resolve(result);
    return undefined;
  }
  onNote() {}
  answerTo(method, params) {
    this.asked.push({ method, params });
    return this.answers[method];
  }
}

export class SessionClient extends Client {
  async open() {
    const result = await this.call('initialize', { protocolVersion: this.revision, capabilities: this.capabilities, clientInfo: INFO });
    this.negotiated = result.protocolVersion;
    this.server = result.capabilities;
    await this.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  }
  headers() {
    return this.negotiated >= '2025-06-18' ? { 'mcp-protocol-version': this.negotiated } : {};
  }
  start(method, params, { token } = {}) {
    return this.post(method, token === undefined ? params : { ...params, _meta: { progressToken: token } });
  }
  async setLevel(level) {
    await this.call('logging/setLevel', { level });
  }
  async task(name, args, { cancel = false } = {}) {
    const { task } = await this.call('tools/call', { name, arguments: args, task: { ttl: 60_000 } });
    if (cancel) await this.call('tasks/cancel', { taskId: task.taskId });
    const { status } = await this.ended(task.taskId);
    return { status, result: status === 'completed' ? await this.call('tasks/result', { taskId: task.taskId }) : undefined };
  }
  async watch({ kinds = [], uris = [] }) {
    if (kinds.length || uris.length) await this.channel.hear(this.headers());
    for (const uri of uris) await this.call('resources/subscribe', { uri });
  }
  async cancel(id) {
    await this.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
  }
  async onAsk({ id, method, params }) {
    const result = method === 'ping' ? {} : this.answerTo(method, params);
    const body = result ? { result } : { error: { code: -32601, message: 'not declared' } };
    await this.send({ jsonrpc: '2.0', id, ...body });
  }
}

export class StatelessClient extends Client {
  #listens = new Set(); // IDs of subscriptions/listen
  async open() {
    const { supportedVersions, capabilities } = await this.call('server/discover');
    if (!supportedVersions.includes(this.revision)) throw new Error(`the server supports ${supportedVersions}`);
    this.server = capabilities;
  }
  headers({ method, params }) {
    const named = { 'tools/call': params?.name, 'prompts/get': params?.name, 'resources/read': params?.uri };
    const name = named[method] ?? (method?.startsWith('tasks/') ? params?.taskId : undefined);
    return { 'mcp-protocol-version': this.revision, 'mcp-method': method, ...(name === undefined ? {} : { 'mcp-name': name }) };
  }
  start(method, params, { token } = {}) {
    const _meta = {
      [`${META}protocolVersion`]: this.revision,
      [`${META}clientCapabilities`]: this.capabilities,
      [`${META}clientInfo`]: INFO,
      ...(this.level ? { [`${META}logLevel`]: this.level } : {}),
      ...(token === undefined ? {} : { progressToken: token }),
    };
    const { id, done } = this.post(method, { ...params, _meta });
    const final = this.#finish(method, { ...params, _meta }, done);
    final.catch(() => {});
    return { id, done: final };
  }
  // Responds to input_required results until the final result arrives.
  async #finish(method, params, done) {
    for (;;) {
      const result = await done;
      if (result.resultType !== 'input_required') return result;
      const inputResponses = Object.fromEntries(Object.entries(result.inputRequests ?? {})
        .map(([key, { method: kind, params: asked }]) => [key, this.answerTo(kind, asked)]));
      const state = result.requestState === undefined ? {} : { requestState: result.requestState };
      done = this.post(method, { ...params, inputResponses, ...state }).done;
    }
  }
  async setLevel(level) {
    this.level = level;
  }
  // Declares the extension for these requests only.
  async task(name, args, { cancel = false } = {}) {
    const before = this.capabilities;
    this.capabilities = { ...before, extensions: { [TASKS]: {} } };
    try {
      const { resultType, taskId } = await this.call('tools/call', { name, arguments: args });
      if (resultType !== 'task') throw new Error(`a result of type ${resultType} instead of a task`);
      if (cancel) await this.call('tasks/cancel', { taskId });
      return await this.ended(taskId);
    } finally {
      this.capabilities = before;
    }
  }
  // Waits for the acknowledgement, which must name everything that was requested.
  async watch({ kinds = [], uris = [] }) {
    const notifications = Object.fromEntries(KINDS.filter((kind) => kinds.includes(kind)).map((kind) => [`${kind}ListChanged`, true]));
    if (uris.length) notifications.resourceSubscriptions = uris;
    const { id, done } = this.start('subscriptions/listen', { notifications });
    this.#listens.add(id);
    const acknowledged = this.note('notifications/subscriptions/acknowledged', ({ _meta }) => _meta?.[SUBSCRIPTION] === id);
    const { notifications: granted } = await Promise.race([acknowledged, done.then(() => acknowledged)]);
    for (const [name, value] of Object.entries(notifications)) {
      if (JSON.stringify(granted[name]) !== JSON.stringify(value)) throw new Error(`not acknowledged: ${name}: ${JSON.stringify(granted)}`);
    }
  }
  async cancel(id) {
    if (this.channel.abort(id)) return;
    await this.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
  }
  // Notifications of a subscription must name it, and other notifications must not.
  onNote({ method, params }) {
    const subscribed = /list_changed|resources\/updated|subscriptions/.test(method);
    const known = this.#listens.has(params?._meta?.[SUBSCRIPTION]);
    if (subscribed !== known) this.wire.errors.push(`received ${method} with the subscription ${params?._meta?.[SUBSCRIPTION]}`);
  }
  async onAsk({ method }) {
    this.wire.errors.push(`received a request: ${method}; 2026-07-28 has none`);
  }
}
