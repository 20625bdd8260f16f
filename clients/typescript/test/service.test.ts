// Against a running service: LAMINA_URL and LAMINA_API_KEY, the key of an admin of a tenant of its own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lamina, LaminaError, type Schemas } from "../src/index.js";

const lamina = new Lamina({ scope: { workspace: "atlas 🗺" } });
const within = { path: { workspace: "atlas 🗺" } };

async function refusal(call: Promise<unknown>): Promise<LaminaError> {
  const error = await call.then(
    () => assert.fail("it was accepted"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof LaminaError, String(error));
  return error;
}

test("what is stored is found, changed and deleted by its id", async () => {
  const { id } = await lamina.post("/v1/notes", { body: { content: "The spare key hangs behind the barometer" } });
  const { results } = await lamina.post("/v1/search", { body: { query: "where is the spare key?" } });
  assert.equal(results[0]?.id, id);

  const note: Schemas["NoteOut"] = await lamina.patch("/v1/notes/{id}", {
    params: { path: { id } },
    body: { content: "The spare key lies under the mat", tags: ["door 🚪"] },
  });
  assert.deepEqual(note.tags, ["door 🚪"]);
  assert.equal(await lamina.delete("/v1/notes/{id}", { params: { path: { id } } }), undefined);

  const error = await refusal(lamina.get("/v1/notes/{id}", { params: { path: { id } } }));
  assert.equal(error.status, 404);
  assert.equal(error.problem.fields?.["kind"], "note");
});

test("the scope of the client is sent, and one that a request names wins", async () => {
  await lamina.post("/v1/notes", { body: { content: "At home", workspace: "home" } });
  const at = (workspace?: string) =>
    lamina.get("/v1/notes", workspace === undefined ? {} : { params: { query: { workspace } } });

  assert.deepEqual((await at()).notes.map(({ content }) => content), []);
  assert.deepEqual((await at("home")).notes.map(({ content }) => content), ["At home"]);
});

test("a list goes through all its pages", async () => {
  const contents = ["a", "b", "c", "d", "e"].map((letter) => `Lighthouse ${letter}`);
  for (const content of contents) {
    await lamina.post("/v1/notes", { body: { content, workspace: "pages" } });
    const path = { ...within.path, path: `log/${content} é.md` };
    await lamina.put("/v1/workspaces/{workspace}/files/{path}", { params: { path }, body: { content } });
  }

  const notes: string[] = [];
  for await (const note of lamina.each("/v1/notes", { params: { query: { workspace: "pages", limit: 2 } } })) {
    notes.push(note.content);
  }
  const files: string[] = [];
  const params = { ...within, query: { limit: 2 } };
  for await (const file of lamina.each("/v1/workspaces/{workspace}/files", { params })) files.push(file.path);

  assert.deepEqual(notes.sort(), contents);
  assert.deepEqual(files, contents.map((content) => `log/${content} é.md`));
  await assert.rejects(lamina.each("/v1/status").next(), /is no list/);
});

test("ids of any script are read back", async () => {
  for (const session of ["🦊/1", "a?b#c", "%2F", "日本", "x".repeat(128)]) {
    await lamina.post("/v1/turns", { body: { session, messages: [{ content: `I am ${session}` }] } });
    const path = { session };
    const { messages } = await lamina.get("/v1/sessions/{session}/messages", { params: { path } });
    assert.deepEqual(messages.map(({ content }) => content), [`I am ${session}`]);
  }
});

test("what no address can hold is refused before another route is called", async () => {
  for (const session of ["", ".", "..", "\ud800"]) {
    const path = { session };
    const { status } = await refusal(lamina.get("/v1/sessions/{session}/messages", { params: { path } }));
    assert.equal(status, 0, session);
  }
});

test("a text that cannot be stored is refused with its field", async () => {
  for (const content of ["\ud800", "  ", "x".repeat(10_000_000)]) {
    const error = await refusal(lamina.post("/v1/notes", { body: { content } }));
    assert.ok([413, 422].includes(error.status), error.message);
    assert.ok(error.message.length > 10);
  }
});

test("a place in a list that is none is refused", async () => {
  const error = await refusal(lamina.get("/v1/events", { params: { query: { after: "stale" } } }));
  assert.equal(error.status, 422);
  assert.match(error.message, /after/);
});

test("a key that is none is refused", async () => {
  const error = await refusal(new Lamina({ key: "lamina_none" }).get("/v1/notes"));
  assert.equal(error.status, 401);
});

test("a file is uploaded and found", async () => {
  const file = new File(["The lantern of the lighthouse was green."], "lantern.txt", { type: "text/plain" });
  const { id, status } = await lamina.post("/v1/documents/upload", { body: { file, tags: ["light"] } });
  assert.equal(status, "created");
  const document = await lamina.get("/v1/documents/{id}", { params: { path: { id } } });
  assert.equal(document.content, "The lantern of the lighthouse was green.");
  assert.equal(document.source, "lantern.txt");
  assert.deepEqual(document.tags, ["light"]);
});

// @ts-expect-error A form without its file.
void (() => lamina.post("/v1/documents/upload", { body: { tags: ["light"] } }));
// @ts-expect-error A field that no note has.
void (() => lamina.post("/v1/notes", { body: { content: "x", hue: 7 } }));
// @ts-expect-error A route that the service has not.
void (() => lamina.get("/v1/nothing"));
// @ts-expect-error An id that is missing.
void (() => lamina.get("/v1/notes/{id}"));
