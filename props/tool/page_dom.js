// As much of a browser as the tool's pages use: a tree of elements, canvases that note what is written on them, and one width.
//
// Purpose: the tests of the pages run their scripts without a browser. Nothing is laid out: every canvas is as wide as is said.
"use strict";
const fs = require("fs");
const vm = require("vm");

class Node {
  constructor(tag, page) {
    Object.assign(this, {tag, page, children: [], attributes: {}, listeners: {}, style: {}, parentNode: null, text: "", offsetWidth: 90,
      offsetHeight: 40, id: "", className: ""});
    if (tag === "canvas") page.canvases.push(this);
  }
  get textContent() { return this.text + this.children.map(child => child.textContent).join(""); }
  set textContent(text) { this.text = String(text); this.children = []; }
  get clientWidth() { return this.page.width; }
  get clientHeight() { return parseFloat(this.style.height) || 0; }
  append(...nodes) {
    for (const node of nodes) {
      const child = typeof node === "string" ? Object.assign(new Node("#text", this.page), {text: node}) : node;
      child.parentNode = this;
      this.children.push(child);
    }
  }
  replaceChildren(...nodes) { this.children = []; this.append(...nodes); }
  remove() { this.parentNode.children = this.parentNode.children.filter(child => child !== this); }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  addEventListener(name, listener) { (this.listeners[name] ||= []).push(listener); }
  fire(name, event = {}) { for (const listener of this.listeners[name] || []) listener(event); }
  all(tag) { return [...(this.tag === tag ? [this] : []), ...this.children.flatMap(child => child.all(tag))]; }
  getContext() { return this.pen ||= penOf(this); }
}

// Every letter is 6.2 px wide, as those of 11px sans-serif are on average.
const letter = 6.2;
function penOf(canvas) {
  const pen = {canvas, textAlign: "left", measureText: text => ({width: String(text).length * letter}), getTransform: () => ({}),
    createPattern: () => "pattern"};
  pen.clearRect = () => { canvas.written = []; };
  pen.fillText = (text, x, y) => {
    const width = String(text).length * letter, left = x - {left: 0, center: width / 2, right: width}[pen.textAlign];
    (canvas.written ||= []).push({text, left, right: left + width, y});
  };
  for (const name of ["beginPath", "moveTo", "lineTo", "stroke", "fill", "fillRect", "strokeRect", "setTransform", "setLineDash",
    "drawImage"]) pen[name] = () => {};
  return pen;
}

// Runs the page's script, `wanted` being names of its functions to return. `without`: globals that this browser lacks.
function open(file, {width = 1240, wanted = [], without = []} = {}) {
  const html = fs.readFileSync(file, "utf8");
  const page = {html, width, canvases: []};
  const script = html.slice(html.indexOf("<script>") + 8, html.lastIndexOf("</script>"));
  const opening = '<script type="application/json" id="data">';
  const begin = html.indexOf(opening) + opening.length;
  const data = new Node("script", page);
  data.textContent = html.slice(begin, html.indexOf("</script>", begin));
  page.data = JSON.parse(data.textContent);
  page.main = new Node("main", page);
  const document = {documentElement: {}, createElement: tag => new Node(tag, page),
    getElementById: id => id === "data" ? data : id === "main" ? page.main : null};
  class ResizeObserver {
    constructor(callback) { this.callback = callback; }
    observe() { this.callback(); }
  }
  const context = {document, ResizeObserver, window: {devicePixelRatio: 1}, matchMedia: () => ({addEventListener() {}}),
    getComputedStyle: () => ({getPropertyValue: () => "#123456"}), atob, Blob, Response, DecompressionStream, Uint8Array, console};
  for (const name of without) delete context[name];
  page.functions = vm.runInNewContext(`${script}\n;({${wanted.join(", ")}})`, context);
  return page;
}

module.exports = {open};
