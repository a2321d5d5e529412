
// The script that the tool's pages share; CMakeLists.txt inserts it into each. #data has the data as JSON, #main gets the content.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const make = (tag, props = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children);
  return node;
};
const bytes = n => {
  if (n < 1024) return n + " B";
  let unit = -1;
  do { n /= 1024; ++unit; } while (n >= 1024 && unit < 5);
  return n.toFixed(n >= 1000 ? 0 : n >= 100 ? 1 : n >= 10 ? 2 : 3) + " " + "KMGTPE"[unit] + "iB";
};
const count = n => n.toLocaleString("en-US");
const counted = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
const percent = x => (100 * x).toFixed(1) + " %";

// A canvas as wide as its card, with a readout at the pointer. `label` says what it shows to those who do not see it. It is
// redrawn when its size, the screen or the colour scheme changes; the result redraws it. `pick` is called where it is pressed.
function plot(parent, label, height, draw, describe, pick) {
  const canvas = make("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  const readout = make("div", {className: "readout"});
  readout.setAttribute("aria-hidden", "true");
  parent.append(make("div", {className: "plot"}, canvas, readout));
  let at = null;
  const redraw = () => {
    const width = canvas.clientWidth, scale = window.devicePixelRatio || 1, tall = height(width);
    canvas.style.height = tall + "px";
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(tall * scale);
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    draw(pen, width, tall, at);
  };
  const leave = () => { at = null; readout.style.display = "none"; redraw(); };
  const follow = move => {
    at = {x: move.offsetX, y: move.offsetY};
    if (pick && move.buttons) pick(at, canvas.clientWidth);
    redraw();
    const rows = describe(at, canvas.clientWidth, canvas.clientHeight);
    readout.style.display = rows ? "block" : "none";
    if (!rows) return;
    readout.replaceChildren(make("table", {}, ...rows.map(row =>
      make("tr", {}, ...row.map(cell => make("td", {textContent: cell}))))));
    const room = canvas.clientWidth - readout.offsetWidth;
    const left = at.x + 14 <= room ? at.x + 14 : at.x - 14 - readout.offsetWidth;
    readout.style.left = Math.max(0, Math.min(left, room)) + "px";
    readout.style.top = Math.max(0, at.y - readout.offsetHeight - 8) + "px";
  };
  canvas.addEventListener("pointermove", follow);
  canvas.addEventListener("pointerdown", follow);
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("pointercancel", leave);
  new ResizeObserver(redraw).observe(canvas.parentNode);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  return redraw;
}

// Writes the label of a tick at x, moved so far that none of it is outside of the canvas.
function tickLabel(pen, text, x, y, width) {
  const half = pen.measureText(text).width / 2 + 1;
  pen.textAlign = "center";
  pen.fillText(text, Math.max(half, Math.min(x, width - half)), y);
}

function legend(parent, entries) {
  parent.append(make("div", {className: "legend"}, ...entries.map(([style, text]) => {
    const key = make("i");
    key.style.background = style;
    return make("span", {}, key, text);
  })));
}

// Tick values from 0 to `top`, at most about `most` of them. Their step is a power of two if `binary`, else 1, 2 or 5 times a power
// of ten.
function ticks(top, most, binary) {
  let step = 1;
  if (binary) { while (top / step > most) step *= 2; }
  else { for (let i = 0; top / step > most; ++i) step *= [2, 2.5, 2][i % 3]; }
  const out = [];
  for (let v = 0; v <= top; v += step) out.push(v);
  return out;
}

// The axes of bytes over events, and where a number of bytes is drawn: the plot's area is w by h at left and top.
function timeAxes(pen, {left, right, top, w, h, width}, peak, most, events) {
  const yOf = v => top + h - v / peak * h;
  pen.font = "11px system-ui, sans-serif";
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const v of ticks(peak, most, true)) {
    const y = Math.round(yOf(v)) + .5;
    pen.strokeStyle = colour("grid");
    pen.beginPath(); pen.moveTo(left, y); pen.lineTo(width - right, y); pen.stroke();
    pen.fillStyle = colour("soft");
    pen.fillText(bytes(v).replace(/^[\d.]+/, parseFloat), left - 8, y);
  }
  pen.textBaseline = "top";
  for (const v of ticks(events, Math.max(2, width / 110), false)) tickLabel(pen, count(v), left + v / Math.max(1, events) * w, top + h + 6, width);
  tickLabel(pen, "event", left + w / 2, top + h + 20, width);
  return yOf;
}

// The hatching of unused memory: as a canvas pattern, and as a CSS background for legends.
function hatchedOf(pen) {
  const hatch = make("canvas", {width: 6, height: 6}), ink = hatch.getContext("2d");
  ink.fillStyle = colour("free"); ink.fillRect(0, 0, 6, 6);
  ink.strokeStyle = colour("hatch"); ink.lineWidth = 1;
  ink.beginPath(); ink.moveTo(-1, 7); ink.lineTo(7, -1); ink.stroke();
  return pen.createPattern(hatch, "repeat");
}
const hatchedKey = "repeating-linear-gradient(135deg, var(--free) 0 3px, var(--hatch) 3px 4px)";

// Mixes two #rrggbb colours: a at t = 0, b at t = 1.
const mix = (a, b, t) => "rgb(" + [1, 3, 5].map(i =>
  Math.round(parseInt(a.substr(i, 2), 16) * (1 - t) + parseInt(b.substr(i, 2), 16) * t)).join(" ") + ")";

// A row is [value, description, whether it is bad].
const figureList = rows => make("div", {className: "figures"}, ...rows.map(([value, text, bad]) =>
  make("div", {}, make("b", {textContent: value, className: bad ? "bad" : ""}), make("span", {textContent: text}))));

// A table with its caption. A row is {name, link: null or what its name leads to, cells, bad: indices of the cells that are bad};
// `first` is the head of the names.
function captioned(caption, [first, ...head], rows) {
  const column = text => make("th", {scope: "col", textContent: text});
  const body = rows.map(({link, name, cells, bad}) => make("tr", {},
    make("th", {scope: "row"}, link ? make("a", {href: link, textContent: name}) : name),
    ...cells.map((text, i) => make("td", {textContent: text, className: bad.includes(i) ? "bad" : ""}))));
  return make("table", {}, make("caption", {textContent: caption}),
    make("thead", {}, make("tr", {}, column(first), ...head.map(column))), make("tbody", {}, ...body));
}

// The same in a box that scrolls by itself where the screen is narrow; by keyboard too.
function scrollingTable(className, caption, head, rows) {
  const box = make("div", {className, tabIndex: 0}, captioned(caption, head, rows));
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", caption);
  return box;
}
const summaryTable = (caption, head, rows) => scrollingTable("card scroll", caption, head, rows);

// The index of the last value of an ascending list that is not above t; -1 if there is none.
function lastUpTo(list, t) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] <= t) low = middle + 1; else high = middle;
  }
  return low - 1;
}
