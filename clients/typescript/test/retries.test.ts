// Against a proxy that answers what it is told.

import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Lamina, LaminaError, type Options } from "../src/index.js";

/** An answer, or its text as it is; one that is cut off comes without its end. */
type Told = { status: number; headers?: Record<string, string>; body?: unknown; text?: string; cut?: "closed" | "open" };
const NEVER = 0;
const OURS: Told = { status: 200, body: { id: "1", existed: false } };

/** Run a test with a client of a service that gives these answers, the last for ever. */
async function answered(
  answers: Told[],
  run: (lamina: Lamina, asked: () => number, sent: string[]) => Promise<void>,
  options: Options = {},
) {
  let asked = 0;
  const sent: string[] = [];
  const server: Server = createServer((request, response) => {
    const { status, headers = {}, body = {}, text = JSON.stringify(body), cut } =
      answers[Math.min(asked++, answers.length - 1)] ?? OURS;
    let received = "";
    request.setEncoding("utf8").on("data", (part) => (received += String(part)));
    request.on("end", () => {
      sent.push(received);
      if (status === NEVER) return;
      const whole = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text), ...headers };
      response.writeHead(status, whole);
      if (cut === undefined) response.end(text);
      else response.write(text.slice(0, 1), () => cut === "closed" && response.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await run(new Lamina({ url, key: "k", ...options }), () => asked, sent);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const busy = (retryAfter: string, status = 503, body: unknown = {}): Told => ({
  status,
  headers: { "Retry-After": retryAfter },
  body,
});
const read = (lamina: Lamina) => lamina.get("/v1/notes/{id}", { params: { path: { id: "1" } } });
const store = (lamina: Lamina, key?: string) =>
  lamina.post("/v1/notes", {
    body: { content: "green tea" },
    ...(key === undefined ? {} : { params: { header: { "Idempotency-Key": key } } }),
  });
const noTurn = { fields: { part: "turn" } };
const noAnswer = { fields: { part: "search" } };
const change = (lamina: Lamina, version?: string) =>
  lamina.patch("/v1/notes/{id}", {
    params: { path: { id: "1" }, ...(version === undefined ? {} : { header: { "If-Match": version } }) },
    body: { content: "green tea" },
  });
const remove = (lamina: Lamina) => lamina.delete("/v1/notes/{id}", { params: { path: { id: "1" } } });
const forget = (lamina: Lamina) => lamina.delete("/v1/memories/{id}", { params: { path: { id: "1" } } });
const UNROUTED: Told = { status: 404, headers: { "Content-Type": "text/plain" } };
const MISSING: Told = { status: 404, body: { detail: "note 1 does not exist" } };

for (const [name, refusal, call] of [
  ["a read", busy("0"), read],
  ["a write that may be sent twice", busy("0"), (lamina: Lamina) => store(lamina, "k")],
  ["a write that was refused before it began", busy("0", 429), store],
  ["a search that had no turn", busy("0", 503, noTurn), store],
  ["a search that no source answered in time", busy("0", 503, noAnswer), store],
  ["a change of any version", busy("0"), change],
  ["a change of one version that had not begun", busy("0", 503, noTurn), (lamina: Lamina) => change(lamina, '"3"')],
  ["after a date that has passed", busy("Wed, 21 Oct 2015 07:28:00 GMT"), read],
] as [string, Told, (lamina: Lamina) => Promise<unknown>][]) {
  test(`is repeated: ${name}`, () =>
    answered([refusal, OURS], async (lamina, asked) => {
      assert.deepEqual(await call(lamina), OURS.body);
      assert.equal(asked(), 2);
    }));
}

const tomorrow = new Date(Date.now() + 86_400_000).toUTCString();
for (const [name, refusal, call] of [
  ["a write that may have begun", busy("0"), store],
  ["a change of one version", busy("0"), (lamina: Lamina) => change(lamina, '"3"')],
  ["a deletion that tells what it deleted", busy("0"), forget],
  ["after longer than the client waits", busy("90000"), read],
  ["after a date that is far", busy(tomorrow), read],
  ["without a time", { status: 503 }, read],
  ["an error of the service", { status: 500, headers: { "Retry-After": "0" } }, read],
  ["a redirect", { status: 307, headers: { Location: "https://elsewhere.example/" } }, read],
] as [string, Told, (lamina: Lamina) => Promise<unknown>][]) {
  test(`is not repeated: ${name}`, () =>
    answered([refusal], async (lamina, asked) => {
      await assert.rejects(call(lamina), (error) => error instanceof LaminaError && error.status === refusal.status);
      assert.equal(asked(), 1);
    }));
}

test("a deletion that was done the first time is no error", () =>
  answered([busy("0"), MISSING], async (lamina, asked) => {
    assert.equal(await remove(lamina), undefined);
    assert.equal(asked(), 2);
  }));

test("a deletion that a proxy has no route for yet is asked again", () =>
  answered([busy("0"), UNROUTED, UNROUTED, { status: 200 }], async (lamina, asked) => {
    await remove(lamina);
    assert.equal(asked(), 4);
  }));

test("a deletion that a proxy has no route for is never done", () =>
  answered([busy("0"), UNROUTED], async (lamina) => {
    await assert.rejects(remove(lamina), { status: 404 });
  }));

test("a deletion of what was never there is an error", () =>
  answered([busy("0", 429), MISSING], async (lamina) => {
    await assert.rejects(remove(lamina), { status: 404 });
  }));

test("a redirect names the other address", () =>
  answered([{ status: 307, headers: { Location: "https://elsewhere.example/" } }], async (lamina) => {
    await assert.rejects(read(lamina), /leads to https:\/\/elsewhere\.example/);
  }));

test("a refusal in the end tells when to come again", () =>
  answered(
    [busy("0", 429, { detail: "600 requests a minute" })],
    async (lamina, asked) => {
      await assert.rejects(read(lamina), { status: 429, retryAfter: 0, message: "600 requests a minute" });
      assert.equal(asked(), 3);
    },
    { retries: 2 },
  ));

test("a service that is away is named", async () => {
  const lamina = new Lamina({ url: "http://127.0.0.1:9", key: "k", retries: 0 });
  await assert.rejects(read(lamina), { status: 0, message: /127\.0\.0\.1:9.* does not answer/ });
});

test("a service that does not answer in time is given up", () =>
  answered(
    [{ status: NEVER }],
    async (lamina) => {
      await assert.rejects(read(lamina), { status: 0, message: /does not answer/ });
    },
    { timeoutMs: 50 },
  ));

const isOurs = (status: number, message: RegExp) => (error: unknown) =>
  error instanceof LaminaError && error.status === status && message.test(error.message);

test("an answer that is no JSON is an error of its status", () =>
  answered([{ status: 200, headers: { "Content-Type": "text/html" }, text: "<p>Sign in</p>" }], async (lamina) => {
    await assert.rejects(read(lamina), isOurs(200, /answers no JSON/));
  }));

test("an error that is no JSON is one of its status", () =>
  answered([{ status: 502, headers: { "Content-Type": "text/html" }, text: "<p>Bad</p>" }], async (lamina) => {
    await assert.rejects(read(lamina), isOurs(502, /^502 Bad Gateway$/));
  }));

test("an answer without content is none", () =>
  answered([{ status: 200, text: "" }], async (lamina) => {
    assert.equal(await read(lamina), undefined);
  }));

test("an answer that breaks off is an error", () =>
  answered([{ ...OURS, cut: "closed" }], async (lamina) => {
    await assert.rejects(read(lamina), isOurs(0, /there is no answer/));
  }));

test("an answer whose end does not come in time is an error", () =>
  answered(
    [{ ...OURS, cut: "open" }],
    async (lamina) => {
      await assert.rejects(read(lamina), isOurs(0, /there is no answer/));
    },
    { timeoutMs: 200 },
  ));

test("what cannot be sent is an error", async () => {
  await assert.rejects(read(new Lamina({ url: "nowhere", key: "k" })), isOurs(0, /there is no answer/));
  await assert.rejects(read(new Lamina({ key: "k\n😀" })), isOurs(0, /there is no answer/));
});

const why = new Error("the user left");
const aborted = (error: unknown) => isOurs(0, /was aborted/)(error) && (error as LaminaError).cause === why;

test("a call that is aborted is an error with its cause", () =>
  answered([{ status: NEVER }], async (lamina) => {
    const controller = new AbortController();
    const call = lamina.get("/v1/notes", { signal: controller.signal });
    setImmediate(() => controller.abort(why));
    await assert.rejects(call, aborted);
  }));

test("a call that is aborted waits for no further try", { timeout: 30_000 }, async () => {
  const controller = new AbortController();
  const lamina = new Lamina({
    url: "http://127.0.0.1:9",
    key: "k",
    fetch: async () => {
      setImmediate(() => controller.abort(why));
      return Response.json({}, { status: 503, headers: { "Retry-After": "59" } });
    },
  });
  await assert.rejects(lamina.get("/v1/notes", { signal: controller.signal }), aborted);
});

const file = new File(["# Log\n\nสวัสดี 🦊"], "log 1.md", { type: "text/markdown" });
const form = new FormData();
form.append("file", file);
form.append("tags", "log");
form.append("tags", "north");

for (const [name, body] of [
  ["as its fields", { file, tags: ["log", "north"] }],
  ["as a form", form],
] as [string, FormData | { file: File; tags: string[] }][]) {
  test(`a file is sent ${name}, with the scope, and again as it was`, () =>
    answered(
      [busy("0"), OURS],
      async (lamina, asked, sent) => {
        await lamina.post("/v1/documents/upload", { params: { header: { "Idempotency-Key": "k" } }, body });
        assert.equal(asked(), 2);
        assert.equal(sent[1], sent[0]);
        const parts = (sent[0] ?? "").split(/\r\n?/).filter((line) => line !== "" && !line.startsWith("--"));
        assert.deepEqual(parts, [
          'Content-Disposition: form-data; name="workspace"',
          "atlas",
          'Content-Disposition: form-data; name="file"; filename="log 1.md"',
          "Content-Type: text/markdown",
          "# Log\n\nสวัสดี 🦊",
          'Content-Disposition: form-data; name="tags"',
          "log",
          'Content-Disposition: form-data; name="tags"',
          "north",
        ]);
      },
      { scope: { workspace: "atlas" } },
    ));
}
