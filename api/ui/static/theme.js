// Sets the theme that the visitor has chosen, and says to the stylesheet that scripts run.
const root = document.documentElement;
const KEY = "annals-theme";

function stored() {
  try {
    return localStorage.getItem(KEY) ?? "System";
  } catch {
    return "System"; // storage is switched off
  }
}

root.dataset.script = "";
root.dataset.theme = stored();

function connect() {
  const select = document.getElementById("theme");
  if (!select) return;
  select.value = stored();
  select.addEventListener("change", () => {
    root.dataset.theme = select.value;
    try {
      localStorage.setItem(KEY, select.value);
    } catch {
      // the choice holds for this page
    }
  });
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", connect);
else connect();
