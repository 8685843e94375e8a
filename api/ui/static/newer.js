// Says how many changes are newer than the page. It reads the feed of events while the page is visible, and changes
// nothing else. `fetch` reads it, because an EventSource does not tell a refusal from a server that is away.
const START = 1000; // a page that is left at once reads no feed
const ANNOUNCE = 2000; // many changes are announced together
const LONGEST = 60_000;
const SHORT = 10_000; // a stream that ends sooner counts as a failure
const MAX_CHANGES = 100;
const MAX_EVENTS = 1000;

const main = document.querySelector("main[data-newer]");
let { newer: feed, position } = main?.dataset ?? {};
let changes = 0, events = 0, last, isFull = false, isRefused = false;
let running, timer, announcing, failures = 0;

async function follow() {
  const reading = running = new AbortController();
  const began = Date.now();
  try {
    const answer = await fetch(`${feed}&after=${position}`, {
      headers: { Accept: "text/event-stream" }, cache: "no-store", signal: reading.signal,
    });
    if (answer.status === 200 && answer.body) await read(answer.body.getReader());
    else isRefused = answer.status < 500 && answer.status !== 429;
  } catch {
    // the connection is gone, or the page is no longer visible
  }
  reading.abort();
  if (running !== reading) return;
  running = undefined;
  failures = Date.now() - began > SHORT ? 0 : failures + 1;
  if (!isFull && !isRefused) timer = setTimeout(follow, Math.min(LONGEST, 1000 * 2 ** failures) * (0.5 + Math.random() / 2));
}

async function read(reader) {
  const decoder = new TextDecoder();
  let text = "";
  while (!isFull) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (text + decoder.decode(value, { stream: true })).split("\n\n");
    text = blocks.pop();
    blocks.forEach(count);
  }
}

// A change is an interaction, whose events come one after the other. An id tells where to go on after a disconnection.
function count(block) {
  for (const line of block.split("\n")) {
    if (line.startsWith("id: ")) position = line.slice(4);
    if (!line.startsWith("data: ") || isFull) continue;
    const { xregcorrelationid: id } = JSON.parse(line.slice(6));
    if (id !== last) changes += 1;
    last = id;
    events += 1;
    isFull = changes === MAX_CHANGES || events === MAX_EVENTS;
    announcing ??= setTimeout(announce, counter() ? ANNOUNCE : 0);
  }
}

function announce() {
  announcing = undefined;
  const shown = counter() ?? addStatus();
  // Screen readers announce what changes in a status, and not always a status that is itself new.
  const noun = changes === 1 && !isFull ? "change" : "changes";
  setTimeout(() => { shown.textContent = `${changes}${isFull ? " or more" : ""} newer ${noun}`; }, 100);
}

function counter() {
  return main.querySelector("[data-newer-count]");
}

function addStatus() {
  const status = document.createElement("p");
  status.className = "notice newer";
  status.setAttribute("role", "status");
  const shown = document.createElement("span");
  shown.dataset.newerCount = "";
  const link = document.createElement("a");
  link.href = location.pathname + location.search;
  link.textContent = "Show";
  status.append(shown, " ", link);
  main.querySelector("h1").after(status);
  return shown;
}

function see() {
  clearTimeout(timer);
  if (!document.hidden) {
    if (!isFull && !isRefused) timer = setTimeout(follow, START);
    return;
  }
  const reading = running;
  running = undefined;
  reading?.abort();
}

if (main) {
  document.addEventListener("visibilitychange", see);
  see();
}
