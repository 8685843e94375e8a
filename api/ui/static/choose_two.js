// Says that two Versions have to be selected, without leaving the page.
for (const form of document.querySelectorAll("form[data-choose-two]")) {
  form.addEventListener("submit", event => {
    if (form.querySelectorAll("input[name=version]:checked").length === 2) return;
    event.preventDefault();
    let alert = form.querySelector("[role=alert]");
    alert?.remove();
    alert = document.createElement("p");
    alert.setAttribute("role", "alert");
    alert.className = "alert";
    alert.tabIndex = -1;
    alert.textContent = "Select two Versions to compare them.";
    form.append(alert);
    alert.focus();
  });
}
