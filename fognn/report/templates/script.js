"use strict";
(() => {
  // Plots name the colours of the page, which change with the screen's theme.
  const resolved = (value, style) => {
    if (typeof value === "string") {
      return value.replace(/var\((--[a-z0-9-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    }
    if (Array.isArray(value)) return value.map((item) => resolved(item, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(item, style)]));
  };
  const drawAll = () => {
    for (const plot of document.querySelectorAll(".plot")) {
      const figure = JSON.parse(document.getElementById(`${plot.id}-figure`).textContent);
      const { data, layout } = resolved(figure, getComputedStyle(document.documentElement));
      Plotly.react(plot, data, layout, { responsive: true, displayModeBar: false });
    }
  };
  window.addEventListener("DOMContentLoaded", () => window.Plotly && drawAll());
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.Plotly && drawAll());

  // A click on a column's header sorts by it: by the first number of a cell, else by its text.
  const key = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = parseFloat(text.replace("−", "-").replaceAll(",", ""));
    return Number.isNaN(number) ? text : number;
  };
  const order = (a, b) => {
    if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b);
    return typeof a === "number" ? -1 : 1; // cells without a number come last
  };
  for (const head of document.querySelectorAll("table.sortable thead th")) {
    head.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      const body = head.closest("table").tBodies[0];
      const rows = [...body.rows];
      rows.sort((a, b) => (up ? 1 : -1) * order(key(a, head.cellIndex), key(b, head.cellIndex)));
      body.append(...rows);
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
    });
  }
})();
