"use strict";
// The page is whole without this script; it only sorts, finds and pages what stands in it, and never makes HTML of text.
const PER_PAGE = 25;
const table = document.querySelector("table.rows");
const find = document.getElementById("find");

// A total has one row, which there is nothing to find among.
if (table && find) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const next = document.getElementById("next");
  const previous = document.getElementById("previous");
  let page = 0;

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  // What is not a number, or too noisy to be one, comes last in either direction.
  const compare = (one, other, sign) =>
    (Number.isNaN(one) - Number.isNaN(other)) || sign * (typeof one === "string" ? one.localeCompare(other) : one - other || 0);

  const show = () => {
    const words = find.value.toLowerCase();
    const found = rows.filter((row) => row.textContent.toLowerCase().includes(words));
    const pages = Math.max(1, Math.ceil(found.length / PER_PAGE));
    page = Math.min(page, pages - 1);
    const start = page * PER_PAGE;
    const shown = found.slice(start, start + PER_PAGE);
    body.replaceChildren(...shown);
    const last = start + shown.length;
    document.getElementById("range").textContent =
      found.length ? `${(start + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${found.length.toLocaleString("en")}` : "none found";
    previous.disabled = page === 0;
    next.disabled = page === pages - 1;
  };

  const sortBy = (column, heading) => {
    const number = heading.classList.contains("number");
    const before = heading.getAttribute("aria-sort");
    const first = number ? "descending" : "ascending";
    const direction = before === null ? first : before === "ascending" ? "descending" : "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    rows.sort((one, other) => compare(valueOf(one, column), valueOf(other, column), sign));
    page = 0;
    show();
  };

  Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sortBy(column, heading));
  });
  find.addEventListener("input", () => { page = 0; show(); });
  next.addEventListener("click", () => { page += 1; show(); });
  previous.addEventListener("click", () => { page -= 1; show(); });
  document.querySelector(".tools").hidden = false;
  show();
  window.addEventListener("beforeprint", () => body.replaceChildren(...rows));
  window.addEventListener("afterprint", show);
}

const tabs = Array.from(document.querySelectorAll("[role=tab]"));
if (tabs.length > 1) {
  const choose = (chosen) => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
  };
  for (const tab of tabs) tab.addEventListener("click", () => choose(tab));
  document.querySelector(".tabs").hidden = false;
  choose(tabs[0]);
}
