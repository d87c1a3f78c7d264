// The server for the conformance suite, used directly and behind the gateway. It implements the
// requirements that the suite prints, with the low-level API of the official SDK (the high-level
// API rebuilds schemas and would hide members that a gateway drops).
//
//   server.mjs stdio            server.mjs http [PORT]   (prints its URL)
import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { importFromNpm } from '../e2e/gateway.mjs';

const sdk = '@modelcontextprotocol/sdk';
const { Server } = await importFromNpm(`${sdk}/server/index.js`);
const types = await importFromNpm(`${sdk}/types.js`);

// One red pixel, and zero samples of silence.
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const text = (value) => ({ content: [{ type: 'text', text: value }] });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const embedded = (uri, mimeType, body) => ({ type: 'resource', resource: { uri, mimeType, text: body } });
const nothing = { type: 'object', properties: {} };
const needs = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] });

const elicit = async (extra, message, properties, required) => {
  const schema = { type: 'object', properties, ...(required ? { required } : {}) };
  const request = { method: 'elicitation/create', params: { message, requestedSchema: schema } };
  return extra.sendRequest(request, types.ElicitResultSchema);
};
const completed = (said) => text(`Elicitation completed: action=${said.action}, content=${JSON.stringify(said.content ?? {})}`);
const titled = (...pairs) => pairs.map(([value, title]) => ({ const: value, title }));

const schema2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

// name -> [description, inputSchema, run(args, extra)]
const tools = {
  test_simple_text: ['Simple text', nothing, () => text('This is a simple text response for testing.')],
  test_image_content: ['An image', nothing, () => ({ content: [image] })],
  test_audio_content: ['Audio', nothing, () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] })],
  test_embedded_resource: ['An embedded resource', nothing, () => ({
    content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  })],
  test_multiple_content_types: ['Several kinds of content', nothing, () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      image,
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  })],
  test_tool_with_logging: ['Logs while it runs', nothing, async (_, extra) => {
    const lines = ['Tool execution started', 'Tool processing data', 'Tool execution completed'];
    for (const [i, data] of lines.entries()) {
      if (i) await sleep(50);
      await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
    }
    return text('Tool with logging executed successfully');
  }],
  test_error_handling: ['Always fails', nothing, () => ({
    isError: true,
    ...text('This tool intentionally returns an error for testing'),
  })],
  test_tool_with_progress: ['Reports progress', nothing, async (_, extra) => {
    const progressToken = extra._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progress) await sleep(50);
      if (progressToken === undefined) continue;
      await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
    }
    return text('Tool with progress executed successfully');
  }],
  test_sampling: ['Asks the client\'s model', needs('prompt'), async ({ prompt }, extra) => {
    const params = { messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 100 };
    const said = await extra.sendRequest({ method: 'sampling/createMessage', params }, types.CreateMessageResultSchema);
    return text(`LLM response: ${said.content.text}`);
  }],
  test_elicitation: ['Asks the user', needs('message'), async ({ message }, extra) => {
    const said = await elicit(extra, message, {
      username: { type: 'string', description: "User's response" },
      email: { type: 'string', description: "User's email address" },
    }, ['username', 'email']);
    return text(`User response: action: ${said.action}, content: ${JSON.stringify(said.content ?? {})}`);
  }],
  test_elicitation_sep1034_defaults: ['Asks with defaults', nothing, async (_, extra) => completed(
    await elicit(extra, 'Please review and update the form fields with defaults', {
      name: { type: 'string', description: 'User name', default: 'John Doe' },
      age: { type: 'integer', description: 'User age', default: 30 },
      score: { type: 'number', description: 'User score', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', description: 'Verified', default: true },
    }),
  )],
  test_elicitation_sep1330_enums: ['Asks with all forms of enums', nothing, async (_, extra) => completed(
    await elicit(extra, 'Please select options', {
      untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
      titledSingle: {
        type: 'string',
        oneOf: titled(['value1', 'First Option'], ['value2', 'Second Option'], ['value3', 'Third Option']),
      },
      legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
      untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
      titledMulti: {
        type: 'array',
        items: { anyOf: titled(['value1', 'First Choice'], ['value2', 'Second Choice'], ['value3', 'Third Choice']) },
      },
    }),
  )],
  json_schema_2020_12_tool: ['Tool with JSON Schema 2020-12 features', schema2020, (args) => text(JSON.stringify(args))],
  test_reconnection: ['Closes its stream before it answers', nothing, async (_, extra) => {
    await sleep(50);
    extra.closeSSEStream?.();
    await sleep(100);
    return text('Reconnection test completed');
  }],
};

const resources = {
  'test://static-text': ['text/plain', { text: 'This is the content of the static text resource.' }],
  'test://static-binary': ['image/png', { blob: PNG }],
  'test://watched-resource': ['text/plain', { text: 'Watched resource content' }],
};

const prompts = {
  test_simple_prompt: [[], () => [{ type: 'text', text: 'This is a simple prompt for testing.' }]],
  test_prompt_with_arguments: [['arg1', 'arg2'], ({ arg1, arg2 }) => [
    { type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` },
  ]],
  test_prompt_with_embedded_resource: [['resourceUri'], ({ resourceUri }) => [
    embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
    { type: 'text', text: 'Please process the embedded resource above.' },
  ]],
  test_prompt_with_image: [[], () => [image, { type: 'text', text: 'Please analyze the image above.' }]],
};

function readResource(uri) {
  const known = resources[uri];
  if (known) return { uri, mimeType: known[0], ...known[1] };
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id === undefined) throw new types.McpError(-32002, `Resource not found: ${uri}`, { uri });
  const body = { id, templateTest: true, data: `Data for ID: ${id}` };
  return { uri, mimeType: 'application/json', text: JSON.stringify(body) };
}

function createServer() {
  const server = new Server(
    { name: 'conformance-fixture', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
    },
  );
  const on = (schema, handler) => server.setRequestHandler(types[schema], handler);
  on('ListToolsRequestSchema', () => ({
    tools: Object.entries(tools).map(([name, [description, inputSchema]]) => ({ name, description, inputSchema })),
  }));
  on('CallToolRequestSchema', ({ params }, extra) => {
    const tool = tools[params.name];
    if (!tool) throw new types.McpError(types.ErrorCode.InvalidParams, `Unknown tool: ${params.name}`);
    return tool[2](params.arguments ?? {}, extra);
  });
  on('ListResourcesRequestSchema', () => ({
    resources: Object.entries(resources).map(([uri, [mimeType]]) => ({ uri, name: uri, description: `Resource ${uri}`, mimeType })),
  }));
  on('ListResourceTemplatesRequestSchema', () => ({
    resourceTemplates: [
      { uriTemplate: 'test://template/{id}/data', name: 'Template', description: 'A template', mimeType: 'application/json' },
    ],
  }));
  on('ReadResourceRequestSchema', ({ params }) => ({ contents: [readResource(params.uri)] }));
  on('SubscribeRequestSchema', () => ({}));
  on('UnsubscribeRequestSchema', () => ({}));
  on('ListPromptsRequestSchema', () => ({
    prompts: Object.entries(prompts).map(([name, [names]]) => ({
      name,
      description: `Prompt ${name}`,
      arguments: names.map((argument) => ({ name: argument, description: argument, required: true })),
    })),
  }));
  on('GetPromptRequestSchema', ({ params }) => {
    const prompt = prompts[params.name];
    if (!prompt) throw new types.McpError(types.ErrorCode.InvalidParams, `Unknown prompt: ${params.name}`);
    return { messages: prompt[1](params.arguments ?? {}).map((content) => ({ role: 'user', content })) };
  });
  on('CompleteRequestSchema', ({ params }) => {
    const all = ['paris', 'park', 'party'];
    const values = all.filter((value) => value.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  on('SetLevelRequestSchema', () => ({}));
  return server;
}

// Keeps the events of each stream, so that it can be resumed with Last-Event-ID.
class EventStore {
  #events = [];
  async storeEvent(stream, message) {
    this.#events.push({ stream, message });
    return `${stream}/${this.#events.length}`;
  }
  async getStreamIdForEventId(id) {
    return id.slice(0, id.lastIndexOf('/'));
  }
  async replayEventsAfter(last, { send }) {
    const stream = await this.getStreamIdForEventId(last);
    for (let at = Number(last.slice(stream.length + 1)); at < this.#events.length; ++at) {
      const event = this.#events[at];
      if (event.stream === stream && Object.keys(event.message).length) await send(`${stream}/${at + 1}`, event.message);
    }
    return stream;
  }
}

async function serveStdio() {
  const { StdioServerTransport } = await importFromNpm(`${sdk}/server/stdio.js`);
  await createServer().connect(new StdioServerTransport());
}

async function serveHttp(port) {
  const { StreamableHTTPServerTransport } = await importFromNpm(`${sdk}/server/streamableHttp.js`);
  const sessions = new Map();
  const listener = http.createServer(async (req, res) => {
    const local = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;
    const origin = req.headers.origin;
    if (!local.test(req.headers.host ?? '') || (origin && !local.test(new URL(origin).host))) {
      return void res.writeHead(403).end('Host or Origin is not local');
    }
    if (new URL(req.url, 'http://x').pathname !== '/mcp') return void res.writeHead(404).end();
    const id = req.headers['mcp-session-id'];
    if (id !== undefined && !sessions.has(id)) return void res.writeHead(404).end();
    let transport = sessions.get(id);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new EventStore(),
        retryInterval: 200,
        onsessioninitialized: (session) => sessions.set(session, transport),
        onsessionclosed: (session) => sessions.delete(session),
      });
      await createServer().connect(transport);
    }
    await transport.handleRequest(req, res);
    return undefined;
  });
  await new Promise((resolve) => listener.listen(port, '127.0.0.1', resolve));
  console.log(`http://127.0.0.1:${listener.address().port}/mcp`);
}

if (process.argv[2] === 'stdio') await serveStdio();
else await serveHttp(Number(process.argv[3] ?? 0));
