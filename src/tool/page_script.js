
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
const percent = x => (100 * x).toFixed(1) + " %";

// A canvas as wide as its card, with a readout. It is redrawn when its size, the screen or the colour scheme changes.
function plot(parent, height, draw, describe) {
  const canvas = make("canvas");
  const readout = make("div", {className: "readout"});
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
  canvas.addEventListener("mousemove", move => {
    at = {x: move.offsetX, y: move.offsetY};
    redraw();
    const rows = describe(at, canvas.clientWidth, canvas.clientHeight);
    readout.style.display = rows ? "block" : "none";
    if (!rows) return;
    readout.replaceChildren(make("table", {}, ...rows.map(row =>
      make("tr", {}, ...row.map(cell => make("td", {textContent: cell}))))));
    const right = at.x + 16 + readout.offsetWidth < canvas.clientWidth;
    readout.style.left = (right ? at.x + 14 : Math.max(0, at.x - 14 - readout.offsetWidth)) + "px";
    readout.style.top = Math.max(0, at.y - readout.offsetHeight - 8) + "px";
  });
  canvas.addEventListener("mouseleave", () => { at = null; readout.style.display = "none"; redraw(); });
  new ResizeObserver(redraw).observe(canvas.parentNode);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
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

// A row is {link, name, cells, bad: indices of the cells that are bad}.
function summaryTable(head, rows) {
  const body = rows.map(({link, name, cells, bad}) => make("tr", {}, make("td", {}, make("a", {href: link, textContent: name})),
    ...cells.map((text, i) => make("td", {textContent: text, className: bad.includes(i) ? "bad" : ""}))));
  return make("div", {className: "card scroll"}, make("table", {},
    make("thead", {}, make("tr", {}, ...head.map(text => make("th", {textContent: text})))), make("tbody", {}, ...body)));
}
