// Starts and stops the gateway under test. The variable BULKHEAD names the program (default
// build/bin/bulkhead).
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
export const build = process.env.BULKHEAD_BUILD ?? join(root, 'build');
export const program = process.env.BULKHEAD ?? join(build, 'bin/bulkhead');
export const fakeMcp = process.env.FAKE_MCP ?? join(build, 'tests/fake_mcp');
export const npmDir = process.env.BULKHEAD_NPM_DIR ?? join(build, 'npm');
export const node = process.execPath;
// Factor for time limits within which something must happen. Larger for programs with sanitizers.
export const patience = Number(process.env.BULKHEAD_TEST_PATIENCE ?? 1);
export const npmBin = (path) => join(npmDir, 'node_modules', path);
const { default: importFromNpm } = existsSync(join(npmDir, 'import.mjs'))
  ? await import(join(npmDir, 'import.mjs'))
  : { default: () => Promise.reject(new Error('test packages missing')) };
export { importFromNpm };

// Returns the definition of a server that runs fake_mcp.
export const fake = (...args) => ({ command: fakeMcp, args: args.map(String) });
// Returns the definition of a server in an npm package, which runs with the pinned Node.
export const npmServer = (path, ...args) => ({ command: node, args: [npmBin(path), ...args] });

// Resolves with {code, signal} when a child process has exited and its output was read. If other
// processes hold its pipes open, resolves half a second after the exit.
export const ended = (child) => new Promise((resolve) => {
  child.once('exit', (code, signal) => {
    const done = () => resolve({ code, signal });
    child.once('close', done);
    // In two steps, so that output that has arrived is read even if this process was busy.
    setTimeout(() => setTimeout(done, 250).unref(), 250).unref();
  });
});

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
// Returns the result of `look`, or `otherwise` if the file has disappeared since it was listed: a
// running gateway writes files under temporary names and renames them.
function ifThere(look, otherwise) {
  try {
    return look();
  } catch (error) {
    if (error.code === 'ENOENT') return otherwise;
    throw error;
  }
}
// Returns the path and mode of each file and directory below a directory, and the bytes of each
// file as Latin-1 text.
export function filesBelow(folder) {
  return ifThere(() => readdirSync(folder, { withFileTypes: true }), []).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return [...folderItself(path), ...filesBelow(path)];
    return ifThere(() => [{ path, mode: lstatSync(path).mode, text: entry.isFile() ? readFileSync(path, 'latin1') : undefined }], []);
  });
}
const folderItself = (path) => ifThere(() => [{ path, mode: lstatSync(path).mode }], []);
export const alive = (pid) => {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};
// Returns the process IDs of all running processes below `pid`.
export function descendants(pid) {
  const parents = new Map();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      const ppid = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      if (!parents.has(ppid)) parents.set(ppid, []);
      parents.get(ppid).push(Number(entry));
    } catch {
      // the process has exited in the meantime
    }
  }
  const found = [];
  const queue = [pid];
  while (queue.length) {
    for (const child of parents.get(queue.pop()) ?? []) {
      found.push(child);
      queue.push(child);
    }
  }
  return found;
}

const sanitizerOptions = /^(A|T|UB|L)SAN_OPTIONS$/;
// True if the programs are sanitizer builds, which need much memory and have no system-call filter.
export const sanitized = Object.keys(process.env).some((name) => sanitizerOptions.test(name));

// Returns the process IDs (in this namespace) of running processes whose arguments contain this
// text. Inside its sandbox, a server has a different process ID.
export function processesWith(text) {
  const found = [];
  for (const entry of readdirSync('/proc')) {
    try {
      if (/^\d+$/.test(entry) && readFileSync(`/proc/${entry}/cmdline`, 'utf8').includes(text) && alive(Number(entry))) found.push(Number(entry));
    } catch {
      // the process has exited in the meantime
    }
  }
  return found.sort((a, b) => a - b);
}

// On a loaded machine, Node takes longer to start than the gateway waits by default.
function withTime(profile) {
  if (!Object.values(profile?.mcpServers ?? {}).some((server) => server.command === node)) return profile;
  return { ...profile, limits: { first_list_wait_ms: 40_000, connect_timeout_ms: 40_000, ...profile.limits } };
}

let serial = 0;

export class Gateway {
  // profile: an object, which is written as JSON, or text. options: args, env, file (name of the
  // profile), listen (default "127.0.0.1:0"; null: as in the profile), wrap (a command that runs
  // the program).
  constructor(dir, profile, options = {}) {
    this.dir = join(dir, `gateway-${++serial}`);
    mkdirSync(this.dir, { recursive: true });
    this.options = options;
    const text = typeof profile === 'string' ? profile : JSON.stringify(withTime(profile), null, 1);
    const name = options.file ?? (typeof profile === 'string' && !/^\s*\{/.test(profile) ? 'gateway.toml' : 'gateway.json');
    this.config = join(this.dir, name);
    if (profile !== undefined) writeFileSync(this.config, text);
    this.stderrText = '';
    this.stdoutText = '';
  }

  // Separates the gateway from the environment and files of the user who runs the tests.
  env() {
    return {
      PATH: process.env.PATH,
      LANG: 'C.UTF-8',
      HOME: this.dir,
      TMPDIR: this.dir,
      XDG_CONFIG_HOME: join(this.dir, 'config'),
      XDG_STATE_HOME: join(this.dir, 'state'),
      XDG_RUNTIME_DIR: this.dir,
      ...Object.fromEntries(Object.entries(process.env).filter(([name]) => sanitizerOptions.test(name))),
      ...this.options.env,
    };
  }
  stdioCommand() {
    const args = ['stdio', '--config', this.config, ...(this.options.args ?? [])];
    return [program, args, { env: this.env(), cwd: this.dir }];
  }

  // Resolves when the gateway has printed its address.
  async serve() {
    const listen = this.options.listen === null ? [] : ['--listen', this.options.listen ?? '127.0.0.1:0'];
    const args = ['serve', '--config', this.config, ...listen, ...(this.options.args ?? [])];
    this.startedAt = Date.now();
    const [command, ...words] = [...(this.options.wrap ?? []), program, ...args];
    this.child = spawn(command, words, { env: this.env(), cwd: this.dir, stdio: ['ignore', 'pipe', 'pipe'] });
    this.exited = new Promise((done) => {
      ended(this.child).then((exit) => done((this.exit = exit)));
      this.child.on('error', (error) => {
        this.exit = { error };
        this.stderrText += `${error}\n`;
        done(this.exit);
      });
    });
    this.child.stdout.on('data', (data) => (this.stdoutText += data));
    this.child.stderr.on('data', (data) => (this.stderrText += data));
    const end = Date.now() + (this.options.startTimeout ?? 40_000);
    for (;;) {
      const found = /https?:\/\/[^\s/]+:(\d+)\/mcp/.exec(this.stderrText + this.stdoutText);
      if (found && Number(found[1]) !== 0) {
        this.port = Number(found[1]);
        this.url = `http://127.0.0.1:${this.port}/mcp`;
        return this;
      }
      if (this.exit) throw new Error(`the gateway ended at once: ${JSON.stringify(this.exit)}\n${this.stderrText}`);
      if (Date.now() > end) throw new Error(`the gateway printed no address\n${this.stderrText}`);
      await sleep(5);
    }
  }
  // Starts a stopped gateway again, with the same profile and state.
  async again() {
    this.stopped = false;
    this.exit = undefined;
    this.stdoutText = this.stderrText = '';
    return this.serve();
  }
  get pid() {
    return this.child.pid;
  }
  stderr() {
    return this.stderrText;
  }

  // Sends SIGTERM. The gateway and all its processes must exit within a short time.
  async stop() {
    if (!this.child || this.stopped) return;
    this.stopped = true;
    if (this.exit) {
      if (!this.mayExit) throw new Error(`the gateway ended by itself: ${JSON.stringify(this.exit)}`);
      return;
    }
    const below = descendants(this.pid);
    this.child.kill('SIGTERM');
    const late = sleep(15_000 * patience).then(() => 'late');
    if ((await Promise.race([this.exited, late])) === 'late') {
      this.child.kill('SIGKILL');
      throw new Error(`the gateway did not end within ${15 * patience} s of SIGTERM`);
    }
    for (let i = 0; i < 500 && below.some(alive); ++i) await sleep(10);
    const left = below.filter(alive);
    for (const pid of left) process.kill(pid, 'SIGKILL');
    if (left.length) throw new Error(`processes left behind: ${left.join(' ')}`);
    if (this.exit.code !== 0) throw new Error(`exit after SIGTERM: ${JSON.stringify(this.exit)}`);
  }
}

// Runs the program until it exits. Returns {code, stdout, stderr}. The profile is written to a
// file, and "{config}" in the arguments is replaced by its path.
export function runProgram(t, args, { profile, file, env, input } = {}) {
  const gateway = new Gateway(t.dir, profile, { file, env });
  const filled = args.map((arg) => arg.replace('{config}', gateway.config));
  const done = spawnSync(program, filled, {
    env: gateway.env(),
    cwd: gateway.dir,
    input,
    encoding: 'utf8',
    timeout: 40_000 * patience,
  });
  if (done.error && done.error.code !== 'EPIPE') throw done.error; // the program may exit without reading its input
  return { code: done.status, stdout: done.stdout, stderr: done.stderr, config: gateway.config };
}
