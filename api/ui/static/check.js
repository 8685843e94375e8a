// Checks the document of a form while it is typed. The answer is the page itself, of which one region is taken.
const form = document.querySelector("form[data-check]");
const editor = document.querySelector("#document");
const PAUSE = 500;
let timer, running, last = 0;

async function check() {
  const number = ++last;
  running?.abort();
  running = new AbortController();
  const data = new FormData(form);
  data.set("form action", "check");
  data.delete("document file");
  try {
    const answer = await fetch(form.getAttribute("action"), { method: "POST", body: data, signal: running.signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const result = page.querySelector("[data-check-result]");
    // An older answer never replaces a newer one.
    if (number === last && result) document.querySelector("[data-check-result]").replaceChildren(...result.childNodes);
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

editor?.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE);
});
