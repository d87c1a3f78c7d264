// The server of the matrix for 2026-07-28, in which requests are independent of each other.
import { RpcFailure, TASKS, answer, capabilities } from './content.mjs';

const REVISION = '2026-07-28';
const META = 'io.modelcontextprotocol/';
const SUPPORTED = [REVISION];
const CACHED = ['server/discover', 'tools/list', 'resources/list', 'resources/templates/list', 'prompts/list', 'resources/read'];
const ASKING = ['tools/call', 'prompts/get', 'resources/read'];
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
const status = { '-32601': 404, '-32020': 400, '-32021': 400, '-32022': 400 };

// Thrown to return an input_required result.
class Asks extends Error {
  constructor(result) {
    super('input required');
    this.result = result;
  }
}

export class StatelessServer {
  #listens = new Map(); // key -> {id, wanted, reply}
  #cancels = new Map();
  #opened = 0;
  constructor(world) {
    this.world = world;
  }
  // Over HTTP, `over` contains the headers, and a promise that resolves when the exchange is
  // closed, which cancels the request. Resolves when the response was sent.
  async respond(message, reply, over) {
    const { id, method, params } = message;
    if (id === undefined) {
      if (method === 'notifications/cancelled') this.#cancels.get(params.requestId)?.();
      return;
    }
    const send = (body, code = 200) => reply(over ? { status: code, body } : body);
    if (method === undefined) return send({ jsonrpc: '2.0', error: { code: -32600, message: 'clients send no answers' } }, 400);
    try {
      const meta = this.#checked(message, over?.headers);
      const cancelled = Promise.race([new Promise((resolve) => this.#cancels.set(id, resolve)), ...(over ? [over.gone] : [])]);
      if (method === 'subscriptions/listen') return await this.#listen(message, reply, cancelled, over);
      const result = await this.#result(message, meta, reply, cancelled);
      reply({ jsonrpc: '2.0', id, result });
    } catch (error) {
      const body = error.body ?? { code: -32603, message: error.message };
      send({ jsonrpc: '2.0', id, error: body }, error.status ?? status[body.code] ?? 200);
    } finally {
      this.#cancels.delete(id);
    }
  }

  #checked({ method, params }, headers) {
    const fail = (code, text, data) => Object.assign(new RpcFailure(code, text, data), { status: 400 });
    const meta = params?._meta ?? {};
    const version = meta[`${META}protocolVersion`];
    if (version === undefined && method === 'initialize') {
      throw fail(-32022, 'this server has no sessions', { supported: SUPPORTED, requested: params?.protocolVersion ?? '' });
    }
    if (version === undefined || typeof meta[`${META}clientCapabilities`] !== 'object') throw fail(-32602, '_meta is incomplete');
    if (headers) {
      const named = { 'tools/call': params.name, 'prompts/get': params.name, 'resources/read': params.uri };
      const name = named[method] ?? (method.startsWith('tasks/') ? params.taskId : undefined);
      for (const [header, value] of [['mcp-protocol-version', version], ['mcp-method', method], ['mcp-name', name]]) {
        if (value !== undefined && headers[header] !== value) throw fail(-32020, `${header} is ${headers[header]}, not ${value}`);
      }
    }
    if (!SUPPORTED.includes(version)) throw fail(-32022, 'unsupported version', { supported: SUPPORTED, requested: version });
    return meta;
  }

  async #result({ method, params }, meta, reply, cancelled) {
    const more = CACHED.includes(method) ? { ttlMs: 0, cacheScope: 'private' } : {};
    const complete = { resultType: 'complete', _meta: { [`${META}serverInfo`]: { name: 'matrix', version: '1' } }, ...more };
    if (method === 'server/discover') return { ...complete, supportedVersions: SUPPORTED, capabilities: capabilities(REVISION) };
    if (method === 'tasks/get' || method === 'tasks/cancel') return { ...complete, ...this.#task(method, params, meta) };
    try {
      const result = await answer(REVISION, this.world, method, params, this.#io(params, meta, reply, cancelled));
      if (result === undefined) throw new RpcFailure(-32601, `no such method: ${method}`);
      return { ...complete, ...result };
    } catch (error) {
      if (error instanceof Asks && ASKING.includes(method)) return error.result;
      throw error;
    }
  }

  #task(method, { taskId }, meta) {
    if (!meta[`${META}clientCapabilities`].extensions?.[TASKS]) {
      throw new RpcFailure(-32021, 'needs the tasks extension', { requiredCapabilities: { extensions: { [TASKS]: {} } } });
    }
    const task = this.world.task(taskId);
    if (method === 'tasks/get') return { ...task, ttlMs: 60_000, pollIntervalMs: 20 };
    task.status = 'cancelled';
    return {};
  }

  // A request to the client is returned as the result. The client then repeats its request, which
  // runs from the start and contains the responses. Responses of earlier rounds are in
  // requestState.
  #io(params, meta, reply, cancelled) {
    const declared = meta[`${META}clientCapabilities`];
    const level = meta[`${META}logLevel`];
    const answers = { ...(params.requestState ? JSON.parse(params.requestState) : {}), ...params.inputResponses };
    const note = (method, body) => reply({ jsonrpc: '2.0', method, params: body });
    return {
      cancelled,
      task: (run) => {
        if (!declared.extensions?.[TASKS]) return run();
        return { resultType: 'task', ...this.world.start(run), ttlMs: 60_000, pollIntervalMs: 20 };
      },
      stateless: true,
      declares: (name, part) => (part ? declared[name]?.[part] : declared[name]) !== undefined,
      ask: async (key, method, body) => {
        if (answers[key]) return answers[key];
        throw new Asks({ resultType: 'input_required', inputRequests: { [key]: { method, params: body ?? {} } }, requestState: JSON.stringify(answers) });
      },
      progress: (progress, total) => {
        const { progressToken } = meta;
        if (progressToken !== undefined) note('notifications/progress', { progressToken, progress, total });
      },
      log: (at, data) => {
        if (level && LEVELS.indexOf(at) >= LEVELS.indexOf(level)) note('notifications/message', { level: at, data });
      },
      changed: (kind) => this.#announce(`notifications/${kind}/list_changed`, ({ [`${kind}ListChanged`]: wants }) => wants && {}),
      updated: (uri) => this.#announce('notifications/resources/updated', ({ resourceSubscriptions: uris }) => uris?.includes(uri) && { uri }),
    };
  }
  #announce(method, wanted) {
    for (const { id, wants, reply } of this.#listens.values()) {
      const params = wanted(wants);
      if (params) reply({ jsonrpc: '2.0', method, params: { ...params, _meta: { [`${META}subscriptionId`]: id } } });
    }
  }
  async #listen({ id, params }, reply, cancelled, over) {
    const key = ++this.#opened;
    const _meta = { [`${META}subscriptionId`]: id };
    const wants = params.notifications ?? {};
    this.#listens.set(key, { id, wants, reply });
    reply({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: { _meta, notifications: wants } });
    await cancelled;
    this.#listens.delete(key);
    if (!over) reply({ jsonrpc: '2.0', id, result: { resultType: 'complete', _meta } });
  }
}
