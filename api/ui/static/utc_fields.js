// Fields for date and time that are sent in UTC show the zone of the browser.
import { toLocal, toUtc, zoneName } from "./zones.js";

for (const field of document.querySelectorAll("input[data-utc]")) {
  const utc = field.value;
  field.value = toLocal(utc);
  const shown = field.value; // browsers leave out seconds that are zero
  field.form.addEventListener("formdata", event => {
    const { formData } = event;
    formData.set(field.name, field.value === shown ? utc : field.value && toUtc(field.value));
  });
}

for (const hint of document.querySelectorAll("[data-zone]")) hint.textContent = zoneName();
