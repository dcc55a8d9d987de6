"use strict";
(() => {
  const root = document.documentElement;
  const screen = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (screen.matches ? "dark" : "light")) === "dark";

  // --- plots: figures name the colours of the page, which change with the theme ---
  const resolved = (value, style) => {
    if (typeof value === "string") {
      return value.replace(/var\((--[a-z0-9-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    }
    if (Array.isArray(value)) return value.map((item) => resolved(item, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(item, style)]));
  };

  const draw = (plot) => {
    const figure = JSON.parse(document.getElementById(`${plot.id}-figure`).textContent);
    const { data, layout } = resolved(figure, getComputedStyle(root));
    if (window.innerWidth < 500) {
      layout.font.size = 12;
      layout.xaxis.nticks = 4;
    }
    const options = {
      responsive: true,
      displaylogo: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      toImageButtonOptions: { format: "svg", filename: plot.id },
    };
    Plotly.react(plot, data, layout, options).then(() => {
      if (plot.dataset.drawn) return;
      plot.dataset.drawn = "yes";
      plot.on("plotly_click", ({ points }) => {
        const page = points[0].customdata;
        if (typeof page === "string") window.location.href = page;
      });
    });
  };
  const seen = () => [...document.querySelectorAll(".plot")].filter((plot) => !plot.closest("[hidden]"));
  const drawAll = () => seen().forEach(draw);

  // --- theme ---
  const button = document.getElementById("theme");
  const showTheme = () => {
    root.classList.toggle("dark", isDark());
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Show the page in ${isDark() ? "light" : "dark"} colours`);
    if (window.Plotly) drawAll();
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("fognn-theme", root.dataset.theme);
    } catch (error) {
      console.info("the chosen theme cannot be kept:", error.name);
    }
    showTheme();
  });
  screen.addEventListener("change", showTheme);
  showTheme();

  // --- one of several figures ---
  for (const chooser of document.querySelectorAll(".chooser")) {
    const show = () => {
      for (const choice of document.querySelectorAll(`.choice.${chooser.dataset.group}`)) {
        choice.hidden = choice.dataset.name !== chooser.value;
        if (!choice.hidden) choice.querySelectorAll(".plot").forEach(draw);
      }
    };
    chooser.addEventListener("change", show);
    show(); // a browser that goes back keeps what was chosen
  }

  // --- tables that can be sorted ---
  window.fognnTables?.then(({ default: DataTable }) => {
    for (const table of document.querySelectorAll("table.sortable")) {
      new DataTable(table, {
        paging: false, searching: false, info: false, order: [], autoWidth: false,
      });
    }
    root.dataset.sortable = "yes";
  });
})();
