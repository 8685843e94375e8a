// Copies the text of a button's `data-copy`, or of the element whose id is in `data-copy-from`.
async function copy(button) {
  const source = button.dataset.copyFrom && document.getElementById(button.dataset.copyFrom);
  const text = source ? (source.value ?? source.textContent) : button.dataset.copy;
  try {
    await navigator.clipboard.writeText(text);
    say(button, "Copied.");
  } catch {
    say(button, "Not copied: the browser does not allow it.");
  }
}

function say(button, text) {
  let status = button.nextElementSibling;
  if (!status?.matches("[data-copied]")) {
    status = document.createElement("span");
    status.dataset.copied = "";
    status.setAttribute("role", "status");
    button.after(status);
  }
  status.textContent = text;
}

document.addEventListener("click", event => {
  const button = event.target.closest?.("button[data-copy], button[data-copy-from]");
  if (button) copy(button);
});
