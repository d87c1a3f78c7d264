// Defines what the matrix's server offers at each revision. Tools do not know the revision; they
// use `io`:
//
//   io.ask(key, method, params)   sends a request to the client and returns its result
//   io.declares(name, part)       returns true if the client has declared the capability (or its part)
//   io.progress(n, total), io.log(level, data)
//   io.changed(kind), io.updated(uri)
//   io.cancelled                  resolves when the client cancels this request
//   io.task(run)                  runs as a task if the client has requested one, otherwise immediately
export const since = (revision, first) => revision >= first;
export const WATCHED = 'test://watched';
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
export const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';
export const FORM = {
  message: 'Who are you?',
  requestedSchema: { type: 'object', properties: { name: { type: 'string', title: 'Name' } }, required: ['name'] },
};
export const SAMPLE = { messages: [{ role: 'user', content: { type: 'text', text: '2 + 2?' } }], maxTokens: 10 };
export const OUTPUT = { type: 'object', properties: { sum: { type: 'integer' } }, required: ['sum'] };
export const LINK = { mode: 'url', message: 'Sign in', url: 'https://example.com/sign-in' };
export const TASKS = 'io.modelcontextprotocol/tasks';
const PAGE = 5;

const text = (value) => ({ content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }] });
const anything = { type: 'object' };
const lacking = (name) => ({ isError: true, ...text(`the client does not declare ${name}`) });
const asks = (capability, key, method, params) => async (_, io) =>
  (io.declares(capability) ? text(await io.ask(key, method, params)) : lacking(capability));

// The state of the process, which all sessions share.
export class World {
  waiting = 0;
  guarded = 0; // number of calls of `guarded`
  tasks = new Map(); // id -> {taskId, status, createdAt, lastUpdatedAt, result}
  // Starts a task. Unless it is cancelled, its result is that of `run`.
  start(run) {
    const now = new Date().toISOString();
    const task = { taskId: `task-${this.tasks.size + 1}`, status: 'working', createdAt: now, lastUpdatedAt: now };
    this.tasks.set(task.taskId, task);
    run().then((result) => {
      if (task.status === 'working') Object.assign(task, { status: 'completed', result });
    });
    return task;
  }
  task(taskId) {
    const task = this.tasks.get(taskId);
    if (!task) throw invalid(`no such task: ${taskId}`);
    return task;
  }
  stopped = 0;
  extra = { tools: [], prompts: [], resources: [] };
}

// name -> [first revision with the required features, definition, run(args, io, world)]
const tools = {
  echo: ['', {}, (args) => text(args)],
  progress: ['', {}, async (_, io) => {
    for (const step of [1, 2, 3]) io.progress(step, 3);
    return text('done');
  }],
  log: ['', {}, async (_, io) => {
    for (const level of ['debug', 'info', 'error']) io.log(level, { level });
    return text('done');
  }],
  wait: ['', {}, async (_, io, world) => {
    ++world.waiting;
    await io.cancelled;
    --world.waiting;
    ++world.stopped;
    return text('cancelled');
  }],
  counts: ['', {}, (_, io, { waiting, stopped, guarded }) => text({ waiting, stopped, guarded })],
  guarded: ['', {}, (_, io, world) => text(`guarded ${++world.guarded}`)],
  sample: ['', {}, asks('sampling', 'said', 'sampling/createMessage', SAMPLE)],
  roots: ['', {}, asks('roots', 'roots', 'roots/list', undefined)],
  elicit: ['2025-06-18', {}, asks('elicitation', 'form', 'elicitation/create', FORM)],
  elicit_url: ['2025-11-25', {}, async (_, io) => {
    if (!io.declares('elicitation', 'url')) return lacking('elicitation.url');
    const id = io.stateless ? {} : { elicitationId: 'sign-in-1' };
    return text(await io.ask('link', 'elicitation/create', { ...LINK, ...id }));
  }],
  job: ['2025-11-25', {}, ({ ms = 50 }, io) => io.task(async () => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    return text(`worked for ${ms} ms`);
  })],
  image: ['', {}, () => ({ content: [{ type: 'image', data: PNG, mimeType: 'image/png' }] })],
  audio: ['2025-03-26', {}, () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] })],
  structured: ['2025-06-18', { outputSchema: OUTPUT }, ({ a, b }) => ({ ...text({ sum: a + b }), structuredContent: { sum: a + b } })],
  change: ['', {}, ({ kind }, io, { extra }) => {
    extra[kind].push(`extra_${kind}_${extra[kind].length}`);
    io.changed(kind);
    return text(extra[kind].at(-1));
  }],
  touch: ['', {}, (_, io) => {
    io.updated(WATCHED);
    return text('touched');
  }],
};
const offered = (revision) => Object.entries(tools).filter(([, [first]]) => since(revision, first));

export const toolNames = (revision) => offered(revision).map(([name]) => name);
export const resourceUris = ['test://text', 'test://blob', WATCHED, ...Array.from({ length: PAGE }, (_, i) => `test://page/${i}`)];
const promptNames = ['greet', 'plain'];
export { promptNames };

export function capabilities(revision) {
  const all = { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {} };
  if (since(revision, '2026-07-28')) return { ...all, completions: {}, extensions: { [TASKS]: {} } };
  if (since(revision, '2025-11-25')) return { ...all, completions: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } };
  return since(revision, '2025-03-26') ? { ...all, completions: {} } : all;
}

export class RpcFailure extends Error {
  constructor(code, message, data) {
    super(message);
    this.body = { code, message, ...(data === undefined ? {} : { data }) };
  }
}
const invalid = (message, data) => new RpcFailure(-32602, message, data);

function page(items, key, params) {
  const at = Number(params.cursor ?? 0);
  if (!(at >= 0 && at < items.length + 1)) throw invalid('no such cursor');
  const next = at + PAGE < items.length ? { nextCursor: String(at + PAGE) } : {};
  return { [key]: items.slice(at, at + PAGE), ...next };
}

function read(revision, uri) {
  if (uri === 'test://blob') return { contents: [{ uri, mimeType: 'image/png', blob: PNG }] };
  const known = resourceUris.includes(uri) || /^test:\/\/item\/\d+$/.test(uri);
  if (!known) throw new RpcFailure(since(revision, '2026-07-28') ? -32602 : -32002, `no such resource: ${uri}`, { uri });
  return { contents: [{ uri, mimeType: 'text/plain', text: `content of ${uri}` }] };
}

const user = (value) => ({ messages: [{ role: 'user', content: { type: 'text', text: value } }] });
function prompt({ name, arguments: args = {} }) {
  if (name === 'greet') return user(`Greet ${args.whom}`);
  if (name === 'plain') return user('Plain');
  throw invalid(`no such prompt: ${name}`);
}

// Returns the result of a request, or undefined if the method is unknown. Throws RpcFailure.
export function answer(revision, world, method, params, io) {
  switch (method) {
    case 'tools/list': {
      const support = (name) => (name === 'job' && revision === '2025-11-25' ? { execution: { taskSupport: 'optional' } } : {});
      const items = offered(revision)
        .map(([name, [, more]]) => ({ name, description: `Tool ${name}`, inputSchema: anything, ...more, ...support(name) }));
      const extra = world.extra.tools.map((name) => ({ name, inputSchema: anything }));
      return page([...items, ...extra], 'tools', params);
    }
    case 'tools/call': {
      const tool = offered(revision).find(([name]) => name === params.name);
      if (!tool) throw invalid(`no such tool: ${params.name}`);
      return tool[1][2](params.arguments ?? {}, io, world);
    }
    case 'resources/list': {
      const uris = [...resourceUris, ...world.extra.resources.map((name) => `test://${name}`)];
      return page(uris.map((uri) => ({ uri, name: uri })), 'resources', params);
    }
    case 'resources/templates/list':
      return page([{ uriTemplate: 'test://item/{id}', name: 'item' }], 'resourceTemplates', params);
    case 'resources/read':
      return read(revision, params.uri);
    case 'prompts/list': {
      const greet = { name: 'greet', arguments: [{ name: 'whom', required: true }] };
      return page([greet, ...[...promptNames.slice(1), ...world.extra.prompts].map((name) => ({ name }))], 'prompts', params);
    }
    case 'prompts/get':
      return prompt(params);
    case 'completion/complete': {
      const values = ['paris', 'park', 'prague'].filter((value) => value.startsWith(params.argument.value));
      return { completion: { values, total: values.length, hasMore: false } };
    }
    default:
      return undefined;
  }
}
