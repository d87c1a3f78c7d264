// Reads the code in the documents, and lists the commands in them with the tests that run them.
import { readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { root } from './gateway.mjs';

const templates = readdirSync(join(root, 'sdk/template')).map((name) => `sdk/template/${name}/README.md`);
export const files = [
  'README.md', 'HACKING.md', 'SECURITY.md', 'tests/README.md', 'examples/policy-plugin/README.md', ...templates,
  ...readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
];

// Returns the code in a document as {file, line, lang, text}. `lang` is "" for inline code.
export function codeOf(file) {
  const out = [];
  let block = null;
  readFileSync(join(root, file), 'utf8').split('\n').forEach((text, i) => {
    const fence = /^```(\w*)\s*$/.exec(text);
    if (fence && block) {
      out.push(block);
      block = null;
    } else if (fence) {
      block = { file, line: i + 2, lang: fence[1], text: '' };
    } else if (block) {
      block.text += `${text}\n`;
    } else if (/^ {4}\S/.test(text)) {
      out.push({ file, line: i + 1, lang: 'sh', text: text.trim() });
    } else {
      for (const [, code] of text.matchAll(/`([^`]+)`/g)) out.push({ file, line: i + 1, lang: '', text: code });
    }
  });
  return out;
}

// True if a command continues in the next line: after a backslash, or in quotes.
function continues(text) {
  let quote = '';
  for (let i = 0; i < text.length; ++i) {
    const c = text[i];
    if (quote) quote = c === quote ? '' : quote;
    else if (c === '"' || c === "'") quote = c;
    else if (c === '#' && (i === 0 || text[i - 1] === ' ')) break;
  }
  return quote !== '' || text.endsWith('\\');
}

// Returns the blocks of commands in a document as {file, line, commands}: blocks in the language sh,
// and indented blocks.
export function blocksOf(file) {
  const blocks = [];
  let fenced = false; // within a fenced block
  let block = null;
  let open = false; // the last command continues
  const close = () => {
    block = null;
    open = false;
  };
  readFileSync(resolve(root, file), 'utf8').split('\n').forEach((text, i, lines) => {
    const fence = /^```(\w*)\s*$/.exec(text);
    if (fence) {
      close();
      if (!fenced && fence[1] === 'sh') blocks.push((block = { file, line: i + 2, commands: [] }));
      fenced = !fenced;
    } else if (fenced ? block !== null : /^ {4}/.test(text) && (block || lines[i - 1] === '')) {
      if (!block) blocks.push((block = { file, line: i + 1, commands: [] }));
      if (open) block.commands.push(`${block.commands.pop()}\n${text}`);
      else block.commands.push(text.trimStart());
      open = continues(block.commands.at(-1));
    } else {
      close();
    }
  });
  return blocks;
}

export const begins = (first, text) => (first instanceof RegExp ? first.test(text) : text.startsWith(first));

// Returns the commands of the block whose first command begins with `first`, or matches it.
export function block(file, first) {
  const found = blocksOf(file).filter(({ commands }) => begins(first, commands[0]));
  if (found.length !== 1) throw new Error(`${file} has ${found.length} blocks that begin with "${first}"`);
  return found[0].commands;
}

// Every block of the documents is in this list: with the test that runs its commands, or with the
// reason why no test does. `except` has the reasons for single commands of a block.
const builds = 'installs packages and builds Bulkhead; scripts/distro.sh runs it on fresh systems';
export const shown = [
  { file: 'README.md', first: 'apt-get update', not: builds },
  { file: 'README.md', first: 'make run CONFIG', test: 'docs_examples', except: { 'make run CONFIG': builds } },
  { file: 'README.md', first: 'make install', test: 'docs_examples', except: { 'make install': 'requires root; sdk/tests/package.sh and build_ordinary_user test the installation' } },
  { file: 'README.md', first: 'claude mcp add', not: 'requires Claude Code' },
  { file: 'README.md', first: '{ "servers"', test: 'docs_examples' },
  { file: 'README.md', first: '{ "mcpServers": { "bulkhead": { "url"', test: 'docs_examples' },
  { file: 'README.md', first: '{ "mcpServers": { "bulkhead": { "httpUrl"', test: 'docs_examples' },
  { file: 'README.md', first: '{ "mcpServers": { "bulkhead": { "command"', test: 'docs_examples' },
  { file: 'README.md', first: 'make test', not: builds },
  { file: 'tests/README.md', first: 'tests/npm/install.sh', not: 'runs tests' },
  { file: 'examples/policy-plugin/README.md', first: 'cmake -S . -B build', not: 'outside_policy.mjs builds the plugin with these commands and more warnings' },
  { file: 'examples/policy-plugin/README.md', first: 'bulkhead serve --config', not: 'outside_policy.mjs runs the plugin with other profiles' },
  ...templates.map((file) => ({ file, first: 'cmake -B build', test: 'docs_plugins' })),
  ...templates.map((file) => ({ file, first: /^(bulkhead plugin check build|python3 echo_server)/, test: 'docs_plugins' })),
  ...templates.map((file) => ({ file, first: 'cmake --install build', test: 'docs_plugins' })),
  ...templates.filter((file) => /(telemetry|tools|transport)-/.test(file)).map((file) => ({ file, first: /^(bulkhead call --config gateway.toml files|bulkhead plugin swap|python3 client.py)/, test: 'docs_plugins' })),
  { file: 'docs/aggregator.md', first: "printf '%s", test: 'docs_examples' },
  { file: 'docs/approval.md', first: 'bulkhead approvals', test: 'docs_examples' },
  { file: 'docs/approval.md', first: 'POST /confirm', test: 'docs_examples' },
  { file: 'docs/control.md', first: 'curl --unix-socket', test: 'docs_examples' },
  { file: 'docs/corp.md', first: 'minisign -S', test: 'docs_examples' },
  { file: 'docs/plugin-rules.md', first: 'bulkhead plugin check', test: 'docs_plugins' },
  { file: 'docs/plugin-rules.md', first: 'chmod go-w', test: 'docs_plugins' },
  { file: 'docs/plugin-rules.md', first: '{ global:', not: 'a version script; bh_add_plugin() writes it for each plugin that the tests build' },
  { file: 'docs/plugin-rules.md', first: '.section', not: 'a line of assembly' },
  { file: 'docs/plugins.md', first: 'bulkhead plugin new', test: 'docs_plugins' },
  { file: 'docs/plugins.md', first: 'minisign -S', test: 'plugin_trust' },
  { file: 'docs/profile.md', first: '{"file":FILE', test: 'docs_examples' },
  { file: 'docs/profile.md', first: 'jq -cjS', test: 'docs_examples' },
  { file: 'docs/profile.md', first: 'bulkhead mcp add', test: 'docs_examples' },
  { file: 'docs/relay.md', first: '{ "mcpServers"', test: 'docs_examples' },
  { file: 'docs/relay.md', first: '{"jsonrpc":"2.0"', not: 'a message between the relay and the gateway; relay.mjs tests it' },
  { file: 'docs/telemetry.md', first: 'bulkhead calls --server', test: 'docs_examples' },
  { file: 'docs/telemetry.md', first: 'bulkhead calls --tool work__file_delete', test: 'calls' },
  { file: 'docs/telemetry.md', first: 'bulkhead audit verify', test: 'docs_examples' },
  { file: 'docs/telemetry.md', first: 'bulkhead inspect "SELECT * FROM call_intents', test: 'docs_examples' },
];
