// The form "As of": times in the zone of the browser, and the slider.
import { localText } from "./times.js";
import { toLocal, toUtc, zoneName } from "./zones.js";

let waiting;
const form = document.querySelector("form.asof[data-head]");
if (form) connect(form);

function connect(form) {
  const { asofposition: position, asoftime: time } = form.elements;
  const slider = form.querySelector("input[type=range]");
  time.value = toLocal(time.value);
  form.querySelector(".zone").textContent = zoneName();
  form.addEventListener("formdata", event => event.formData.set("asoftime", toUtc(time.value)));
  slider.addEventListener("input", () => describe(form, slider));
  slider.addEventListener("change", () => { position.value = slider.value; });
  slider.addEventListener("pointerup", () => load(form, slider));
  slider.addEventListener("keydown", event => { if (event.key === "Enter") load(form, slider); });
  describe(form, slider);
}

function load(form, slider) {
  if (slider.value === form.elements.shownposition.value) return;
  form.elements.asofposition.value = slider.value;
  form.requestSubmit();
}

function describe(form, slider) {
  const position = slider.value;
  slider.setAttribute("aria-valuetext", position);
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const answer = await fetch(`${form.dataset.root}-/log/head?asof=${position}`);
    if (!answer.ok || slider.value !== position) return;
    const { time } = await answer.json();
    slider.setAttribute("aria-valuetext", `${position}, ${time ? localText(new Date(time)) : "before the first event"}`);
  }, 150);
}
