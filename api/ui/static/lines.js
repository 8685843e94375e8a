// Line numbers beside an editor of documents. Only those in sight are drawn, so that a large document costs no more.
for (const box of document.querySelectorAll("[data-lines]")) number(box, box.querySelector("textarea"));

function number(box, editor) {
  const gutter = document.createElement("div");
  gutter.className = "gutter";
  gutter.setAttribute("aria-hidden", "true");
  const numbers = gutter.appendChild(document.createElement("div"));
  box.prepend(gutter);
  box.classList.add("lined");
  let count = 0, waiting;

  function draw() {
    waiting = undefined;
    const { lineHeight, paddingTop, borderTopWidth } = getComputedStyle(editor);
    const height = parseFloat(lineHeight);
    const first = Math.min(count - 1, Math.max(0, Math.floor(editor.scrollTop / height) - 1));
    const shown = Math.min(count - first, Math.ceil(editor.clientHeight / height) + 2);
    numbers.textContent = Array.from({ length: shown }, (_, index) => first + index + 1).join("\n");
    const top = parseFloat(paddingTop) + parseFloat(borderTopWidth) - gutter.clientTop + first * height - editor.scrollTop;
    numbers.style.transform = `translateY(${top}px)`;
    gutter.style.width = `calc(${Math.max(2, String(count).length)}ch + 16px)`;
  }

  function update() {
    waiting ??= requestAnimationFrame(draw);
  }

  function recount() {
    const text = editor.value;
    count = 1;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
    editor.classList.toggle("wrapped", count === 1); // much JSON is one long line
    update();
  }

  editor.addEventListener("input", recount);
  editor.addEventListener("scroll", update);
  new ResizeObserver(update).observe(editor);
  addEventListener("pageshow", recount); // a browser that goes back fills in what was typed
  recount();
}
