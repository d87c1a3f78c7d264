// A home directory of its own, in which a test runs the commands that a person types.
import { execFile, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { assert, ended, patience, program, show, until } from './lib.mjs';

export class Home {
  constructor(t) {
    this.t = t;
    this.dir = t.path('home');
    this.bin = t.path('bin');
    for (const folder of [this.dir, this.bin, t.path('run')]) mkdirSync(folder, { mode: 0o700, recursive: true });
    chmodSync(this.bin, 0o755);
    for (const name of ['bulkhead', 'bulkhead-relay']) {
      const file = join(dirname(program), name);
      if (existsSync(file)) symlinkSync(file, join(this.bin, name));
    }
    this.profile = join(this.dir, '.config/bulkhead/profile.toml');
    const sanitizers = Object.fromEntries(Object.entries(process.env).filter(([name]) => /SAN_OPTIONS$/.test(name)));
    this.env = { PATH: `${this.bin}:${process.env.PATH}`, HOME: this.dir, LANG: 'C.UTF-8', TMPDIR: t.path(''), XDG_RUNTIME_DIR: t.path('run'), TZ: 'UTC', ...sanitizers };
  }
  // Writes a file in the home directory, or at an absolute path.
  write(name, text, mode = 0o644) {
    const path = name.startsWith('/') ? name : join(this.dir, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof text === 'string' ? text : JSON.stringify(text, null, 2), { mode });
    return path;
  }
  read(name) {
    return readFileSync(join(this.dir, name), 'utf8');
  }
  // Runs a command in a shell. Asserts its exit code, unless `code` is null.
  sh(command, { cwd = this.dir, input, env, code = 0, shell = '/bin/sh' } = {}) {
    return new Promise((resolve, reject) => {
      const options = { cwd, env: { ...this.env, ...env }, timeout: 300_000 * patience, maxBuffer: 64 << 20 };
      const child = execFile(shell, ['-c', command], options, (error, stdout, stderr) => {
        const done = { code: error ? error.code : 0, stdout, stderr };
        if (code !== null && done.code !== code) reject(new Error(`${command}\n${show(done)}`));
        else resolve(done);
      });
      child.stdin.on('error', () => {});
      child.stdin.end(input ?? '');
    });
  }
  // Returns the parsed output of a command.
  async json(command, options) {
    return JSON.parse((await this.sh(command, options)).stdout);
  }
  // Starts a command that runs until the test finishes. Its output is in `text`.
  start(command, { cwd = this.dir, env } = {}) {
    const child = spawn('/bin/sh', ['-c', `exec ${command}`], { cwd, env: { ...this.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const running = { child, text: '', stdout: '' };
    const exited = ended(child).then((exit) => (running.exit = exit));
    child.stdout.on('data', (data) => {
      running.text += data;
      running.stdout += data;
    });
    child.stderr.on('data', (data) => (running.text += data));
    running.stop = async () => {
      if (!running.exit) child.kill('SIGTERM');
      await exited;
    };
    this.t.defer(running.stop);
    return running;
  }
  // Starts a gateway, and returns it when it has printed its address, which is in `url`.
  async serve(command = 'bulkhead serve --listen 127.0.0.1:0', options) {
    const running = this.start(command, options);
    running.url = await until('the gateway has printed its address', () => {
      assert.equal(running.exit, undefined, running.text);
      return /^ +Address +(\S+)$/m.exec(running.text)?.[1];
    }, 40_000);
    this.t.gateways.push({ stderr: () => running.text });
    return running;
  }
}
