// Sends the file of an import and shows how far it is: bytes first, then entities. Leaving the page does not stop it.
const form = document.querySelector("form[data-import]");
form?.addEventListener("submit", event => {
  const file = form.elements.file.files[0];
  if (event.submitter?.value !== "import" || !file) return; // a preview is the page itself
  event.preventDefault();
  send(file, form.elements.dialect.value);
});

function send(file, dialect) {
  const request = new XMLHttpRequest();
  let read = 0;
  let ended = false;
  const step = () => {
    const text = request.responseText;
    const end = text.lastIndexOf("\n\n");
    for (const block of end > read ? text.slice(read, end).split("\n\n") : []) ended = handle(block) || ended;
    read = Math.max(read, end);
  };
  setBusy(true);
  request.upload.addEventListener("progress", event => say(event.loaded, event.total, "bytes sent"));
  request.addEventListener("progress", step);
  request.addEventListener("load", () => {
    step();
    if (!ended) refuse(problemOf(request));
    setBusy(false);
  });
  request.addEventListener("error", () => {
    refuse({ title: "The connection ended before the result was known.", detail: "The timeline shows whether the import is done." });
    setBusy(false);
  });
  request.open("POST", `${form.dataset.import}?dialect=${encodeURIComponent(dialect)}`);
  request.setRequestHeader("Content-Type", "application/json");
  request.setRequestHeader("Accept", "text/event-stream, application/json;q=0.9");
  request.send(file);
}

function handle(block) {
  const lines = block.trim().split("\n");
  const name = lines.find(line => line.startsWith("event: "))?.slice(7);
  const data = JSON.parse(lines.find(line => line.startsWith("data: "))?.slice(6) ?? "{}");
  if (name === "progress") say(data.done, data.total, `entities ${data.phase}`);
  if (name === "refused") refuse(data);
  if (name === "done") finish(data);
  return name === "done" || name === "refused";
}

function finish({ result, report, xregcorrelationid }) {
  const query = new URLSearchParams({ saved: xregcorrelationid ?? "nothing", ...result });
  if (report.length === 0) {
    location.assign(`${form.dataset.done}?${query}`);
    return;
  }
  say(1, 1, "");
  const counts = Object.entries(result).map(([name, count]) => `${count} ${name}`).join(", ");
  const list = document.createElement("ul");
  for (const { path, from, to, why } of report) {
    list.append(element("li", `${path || "/"}: ${JSON.stringify(from)} → ${JSON.stringify(to)} (${why})`));
  }
  show([element("p", counts), list]);
}

function refuse({ title, detail }) {
  const alert = element("p", [title, detail].filter(Boolean).join(" "));
  alert.setAttribute("role", "alert");
  alert.className = "alert";
  alert.tabIndex = -1;
  show([alert]);
  alert.focus();
}

function show(content) {
  const region = document.querySelector("[data-result]");
  region.hidden = false;
  region.querySelector("div").replaceChildren(...content);
}

function problemOf(request) {
  try {
    return JSON.parse(request.responseText);
  } catch {
    return { title: `The server answered with status ${request.status}.` };
  }
}

function say(done, total, unit) {
  const progress = form.querySelector("progress");
  progress.max = total || 1;
  progress.value = total ? done : 1;
  form.querySelector("[data-progress]").textContent = unit && `${done} of ${total} ${unit}`;
}

function setBusy(isBusy) {
  for (const button of form.querySelectorAll("button")) button.disabled = isBusy;
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
