// Runs before the page is drawn: no flash of the wrong colours.
"use strict";
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("fognn-theme");
  } catch (error) {
    // A browser may refuse storage to pages from disk: then the screen's own theme is shown.
    console.info("the chosen theme cannot be kept:", error.name);
  }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
