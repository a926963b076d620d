// Swagger UI has dark colours, behind a class that it sets only with its top bar.
const dark = matchMedia("(prefers-color-scheme: dark)");
const apply = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", apply);
apply();
// Swagger UI's list of servers has no name for a screen reader.
new MutationObserver(() => document.querySelector("#servers")?.setAttribute("aria-label", "Server"))
  .observe(document, { childList: true, subtree: true });
