"use strict";
// A client of the Language Server Protocol over a process's pipes: requests, notifications
// and what the server sends by itself.
const { spawn } = require("node:child_process");

class Client {
  constructor(command, args, onNotification, onEnd) {
    this.pending = new Map();
    this.next = 1;
    this.rest = Buffer.alloc(0);
    this.onNotification = onNotification;
    this.process = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"] });
    this.process.stdout.on("data", (chunk) => this.read(chunk));
    this.process.stdin.on("error", () => {}); // told by the end of the process
    let ended = false;
    const end = (why) => {
      if (ended) return;
      ended = true;
      for (const { reject } of this.pending.values()) reject(new Error(why));
      this.pending.clear();
      if (!this.stopped) onEnd(why);
    };
    this.process.on("error", (err) => end(err.message));
    this.process.on("exit", (code) => end(`it ended with status ${code}`));
  }

  read(chunk) {
    this.rest = Buffer.concat([this.rest, chunk]);
    for (;;) {
      const head = this.rest.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/Content-Length: *(\d+)/i.exec(this.rest.toString("latin1", 0, head))?.[1]);
      if (this.rest.length < head + 4 + length) return;
      const message = JSON.parse(this.rest.toString("utf8", head + 4, head + 4 + length));
      this.rest = this.rest.subarray(head + 4 + length);
      const waiting = this.pending.get(message.id);
      if (!waiting) {
        this.onNotification(message.method, message.params);
        continue;
      }
      this.pending.delete(message.id);
      if (message.error) waiting.reject(new Error(message.error.message));
      else waiting.resolve(message.result);
    }
  }

  send(message) {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.process.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }

  notify(method, params) {
    this.send({ method, params });
  }

  request(method, params) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }

  async stop() {
    this.stopped = true;
    await Promise.race([this.request("shutdown").catch(() => {}), new Promise((done) => setTimeout(done, 1000))]);
    this.notify("exit");
    this.process.kill();
  }
}

module.exports = { Client };
