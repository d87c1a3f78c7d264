// The fixture server for the revisions with sessions (2024-11-05 to 2025-11-25); content.mjs
// defines its tools, resources and prompts. It uses the low-level API of the official SDK 1.x,
// because the high-level API rebuilds schemas and would hide that a gateway has dropped members.
//
//   server.mjs stdio            server.mjs http [PORT]   (prints its URL)
import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { importFromNpm } from '../e2e/gateway.mjs';
import { capabilities, complete, identity, listen, lists, messages, prompts, read, refused, tools } from './content.mjs';

const sdk = '@modelcontextprotocol/sdk';
const { Server } = await importFromNpm(`${sdk}/server/index.js`);
const types = await importFromNpm(`${sdk}/types.js`);

const answerSchemas = {
  'elicitation/create': types.ElicitResultSchema,
  'sampling/createMessage': types.CreateMessageResultSchema,
  'roots/list': types.ListRootsResultSchema,
};
const invalid = (text) => new types.McpError(types.ErrorCode.InvalidParams, text);

// Implements `io` of content.mjs. Everything is sent as a separate message that is related to this
// request.
function ioOf(server, extra) {
  const note = (method, params) => extra.sendNotification({ method, params });
  const declares = (capability) => server.getClientCapabilities()?.[capability] !== undefined;
  return {
    declares,
    need(capability) {
      if (!declares(capability)) throw new types.McpError(types.ErrorCode.InternalError, `The client does not support ${capability}`);
    },
    async ask(requests) {
      const asked = Object.entries(requests).map(async ([key, request]) => [
        key, await extra.sendRequest(request, answerSchemas[request.method]),
      ]);
      return Object.fromEntries(await Promise.all(asked));
    },
    async progress(progress, total) {
      const progressToken = extra._meta?.progressToken;
      if (progressToken !== undefined) await note('notifications/progress', { progressToken, progress, total });
    },
    log: (level, data) => note('notifications/message', { level, data }),
    changed: (kind) => server.notification({ method: `notifications/${kind}/list_changed` }),
    closeStream: () => extra.closeSSEStream?.(),
  };
}

function createServer() {
  const server = new Server(identity, { capabilities });
  const on = (schema, handler) => server.setRequestHandler(types[schema], handler);
  on('ListToolsRequestSchema', lists.tools);
  on('CallToolRequestSchema', ({ params }, extra) => {
    const tool = tools[params.name];
    if (!tool) throw invalid(`Unknown tool: ${params.name}`);
    return tool[2](params.arguments ?? {}, ioOf(server, extra));
  });
  on('ListResourcesRequestSchema', lists.resources);
  on('ListResourceTemplatesRequestSchema', lists.templates);
  on('ReadResourceRequestSchema', ({ params: { uri } }) => {
    const found = read(uri);
    if (!found) throw new types.McpError(-32002, `Resource not found: ${uri}`, { uri });
    return found;
  });
  on('SubscribeRequestSchema', () => ({}));
  on('UnsubscribeRequestSchema', () => ({}));
  on('ListPromptsRequestSchema', lists.prompts);
  on('GetPromptRequestSchema', async ({ params }, extra) => {
    const prompt = prompts[params.name];
    if (!prompt) throw invalid(`Unknown prompt: ${params.name}`);
    return messages(await prompt[1](params.arguments ?? {}, ioOf(server, extra)));
  });
  on('CompleteRequestSchema', ({ params }) => complete(params));
  on('SetLevelRequestSchema', () => ({}));
  return server;
}

// Stores the events of each stream, so that a client can resume it with Last-Event-ID.
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
    if (refused(req, res)) return;
    const id = req.headers['mcp-session-id'];
    if (id !== undefined && !sessions.has(id)) {
      res.writeHead(404).end();
      return;
    }
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
  });
  await listen(listener, port);
}

if (process.argv[2] === 'stdio') await serveStdio();
else await serveHttp(Number(process.argv[3] ?? 0));
