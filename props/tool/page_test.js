// The tool's pages, run without a browser: what they show of a trace is what the trace says, and they can be read and operated.
//
//   node page_test.js ASHLAR FOLDER     the command, and an empty folder for its files
//
// The oracle of the map is the trace itself, played forward here, and at the peak the allocator's own snapshot.
// Imitates: a reader who drags the slider, one who cannot see the picture, a phone. Does not prove that the pages look right.
"use strict";
const assert = require("assert");
const fs = require("fs");
const path = require("path");
const {execFileSync} = require("child_process");
const {open} = require("./page_dom.js");

const [ashlar, folder] = process.argv.slice(2);
const run = (...words) => execFileSync(ashlar, words, {cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"]});

// Numbers that repeat, from a linear congruential generator.
function randomOf(seed) {
  let state = seed;
  return below => { state = (state * 1103515245 + 12345) % 2147483648; return Math.floor(state / 2147483648 * below); };
}

// A trace of two streams and of small and large sizes, with marks; as many blocks live as `live` on average.
function traceOf(events, live, seed) {
  const random = randomOf(seed), held = [], list = [];
  for (let id = 0; list.length < events;) {
    if (list.length % 1000 === 500) list.push(["m", `step ${list.length}`]);
    if (held.length > random(2 * live)) list.push(["f", held.splice(random(held.length), 1)[0]]);
    else {
      list.push(["a", id, random(3) ? 1 + random(60000) : 1 + random(30000000), random(2) * 7]);
      held.push(id++);
    }
  }
  return list.slice(0, events);
}

function write(name, list) {
  const head = {format: "alloc-trace", version: 1};
  fs.writeFileSync(path.join(folder, name), JSON.stringify(head) + "\n" + list.map(row => row.join(" ")).join("\n") + "\n");
}

// After each of these events: the sizes and streams of what is live.
function* liveAt(list, events) {
  const live = new Map(), wanted = new Set(events);
  for (let i = 0; i < list.length; ++i) {
    const [kind, id, size, stream] = list[i];
    if (kind === "a") live.set(id, [size, stream]);
    if (kind === "f") live.delete(id);
    if (wanted.has(i)) yield [i, [...live.values()]];
  }
}

// The page's arrays are of another context than ours, so they are compared as text.
const same = (got, wanted, what) => assert.strictEqual(JSON.stringify(got), JSON.stringify(wanted), what);
const order = (a, b) => a - b || 0;
const texts = rows => rows.map(row => row.join(" ")).sort();

async function judgeMap(page, list, events) {
  const trace = page.data.traces[0], {recordsOf, momentsOf, unpacked, blocksWithin, placesOf, piecesOf} = page.functions;
  const records = recordsOf(trace.moments.first, await unpacked(trace.moments.records)), momentAt = momentsOf(records);
  const streams = [...new Set(list.filter(([kind]) => kind === "a").map(row => row[3]))];
  const pools = [false, true].map(isSmall => placesOf(records.ranges, isSmall));
  const {first, end} = trace.moments, wanted = events.filter(event => event >= first && event < end);
  assert(wanted.length > 5, "few events are looked at");
  for (const [event, live] of liveAt(list, wanted)) {
    const moment = momentAt(event);
    same(texts(moment.blocks.map(b => [b.requested, streams[b.stream]])), texts(live), `what is live at ${event}`);
    assert.strictEqual(blocksWithin(moment.blocks, moment.ranges).length, moment.blocks.length, `a block without memory at ${event}`);
    for (const known of [moment.blocks, moment.ranges]) {
      for (let i = 1; i < known.length; ++i) assert(known[i - 1].address + known[i - 1].size <= known[i].address, `overlap at ${event}`);
    }
    const reserved = moment.ranges.reduce((sum, range) => sum + range.size, 0), line = trace.timeline.reserved;
    const bucket = line.max.findLastIndex((_, i) => Math.floor(i * trace.timeline.events / line.max.length) <= event);
    assert(line.min[bucket] <= reserved && reserved <= line.max[bucket], `reserved at ${event}`);
    for (const {address, size, is_small} of moment.ranges) {
      const pool = pools[Number(is_small)], pieces = piecesOf(pool, address, size);
      assert.strictEqual(pieces.reduce((sum, piece) => sum + piece.size, 0), size, `memory that is not drawn at ${event}`);
      for (const piece of pieces) assert(piece.row < pool.rows && piece.at + piece.size <= pool.across, "outside of the picture");
    }
  }
  return momentAt;
}

function judgePeak(page, momentAt) {
  const trace = page.data.traces[0], plain = ({address, size, requested}) => [address, size, requested];
  const moment = momentAt(trace.map.event);
  const blocks = [], ranges = [];
  for (const segment of trace.map.segments) {
    let isOpen = false;
    for (const [offset, size, requested, state] of segment.blocks) {
      if (state === 1) blocks.push([segment.base + offset, size, requested]);
      if (state !== 4 && isOpen) ranges[ranges.length - 1][1] += size;
      if (state !== 4 && !isOpen) ranges.push([segment.base + offset, size, segment.is_small]);
      isOpen = state !== 4;
    }
  }
  assert(blocks.length > 5 && ranges.length > 1);
  same(moment.blocks.map(plain), blocks, "the map at the peak is the snapshot");
  same(moment.ranges.map(range => [range.address, range.size, range.is_small]), ranges, "and so is the memory");
}

// Pictures have a name, the slider has a label and a text, tables have captions and heads; nothing is loaded.
function judgeAccess(page) {
  for (const part of ["http:", "https:", "@import", "src=", "url("]) assert(!page.html.includes(part), `loads something: ${part}`);
  assert(/<html lang="en">/.test(page.html) && /name="viewport"/.test(page.html));
  const canvases = page.main.all("canvas");
  assert(canvases.length > 0, "no picture");
  for (const canvas of canvases) {
    assert.strictEqual(canvas.attributes.role, "img");
    assert(canvas.attributes["aria-label"], "a picture without a name");
  }
  const labels = page.main.all("label").map(label => label.htmlFor);
  for (const input of page.main.all("input")) {
    assert(labels.includes(input.id), "a slider without a label");
    assert(input.attributes["aria-valuetext"], "a slider without a text");
  }
  for (const table of page.main.all("table").filter(table => table.all("thead").length)) {
    assert(table.all("caption").some(caption => caption.textContent), "a table without a caption");
    for (const head of table.all("th")) assert(["col", "row"].includes(head.scope), "a head without a scope");
    for (const row of table.all("tbody")[0].all("tr")) assert.strictEqual(row.all("th").length, 1, "a row without a head");
  }
  for (const button of page.main.all("button")) assert(button.textContent, "a button without a name");
}

// All that is written on a canvas is within it.
function judgeLabels(page) {
  const canvases = page.canvases.filter(canvas => canvas.written && canvas.written.length);
  assert(canvases.length > 0, "nothing is written");
  for (const canvas of canvases) {
    for (const {text, left, right} of canvas.written) {
      assert(left >= 0 && right <= page.width, `"${text}" is cut at ${page.width} px: ${left} to ${right}`);
    }
  }
}

// Waits until the maps are unpacked and drawn, or given up.
async function settled(page) {
  const isDrawn = () => page.main.all("input").every(input => input.attributes["aria-valuetext"]);
  for (let i = 0; i < 3000 && !isDrawn(); ++i) await new Promise(resolve => setTimeout(resolve, 10));
}
const wanted = ["recordsOf", "momentsOf", "unpacked", "blocksWithin", "placesOf", "piecesOf"];

async function judgeSlider(page, list) {
  const [slider] = page.main.all("input"), [said] = page.main.all("output");
  assert.strictEqual(Number(slider.value), page.data.traces[0].map.event, "it begins at the peak");
  const before = page.main.all("h3").map(node => node.textContent).join();
  for (const [event, live] of liveAt(list, [700, list.length - 1])) {
    slider.value = event;
    slider.fire("input");
    const shown = `event ${event.toLocaleString("en-US")} of ${list.length.toLocaleString("en-US")}`;
    assert(said.textContent.startsWith(shown), `${said.textContent} is not at ${shown}`);
    assert(said.textContent.includes(` live in ${live.length} block`), said.textContent);
    assert(said.textContent.includes("after step "), "the mark before the event");
    assert.strictEqual(slider.attributes["aria-valuetext"], said.textContent);
  }
  assert.notStrictEqual(page.main.all("h3").map(node => node.textContent).join(), before, "the map's headings follow");
  const buttons = page.main.all("button");
  same(buttons.map(button => button.textContent), ["previous mark", "at the peak", "next mark"]);
  buttons[0].fire("click");
  assert.strictEqual(list[Number(slider.value)][0], "m", "the event of a mark");
  const [timeline] = page.main.all("canvas");
  timeline.fire("pointerdown", {offsetX: 76, offsetY: 100, buttons: 1});
  assert.strictEqual(Number(slider.value), 0, "pressing the timeline moves the slider");
}

// The contrast of text and ground, as WCAG 2 counts it, in both colour schemes.
function judgeContrast(page) {
  const schemes = [...page.html.matchAll(/:root \{([^}]*)\}/g)].map(([, body]) =>
    Object.fromEntries([...body.matchAll(/--(\w+): (#[0-9a-f]{6})/g)].map(([, name, value]) => [name, value])));
  assert.strictEqual(schemes.length, 2, "a light and a dark scheme");
  const light = colour => [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16) / 255)
    .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  for (const scheme of schemes) {
    for (const ground of ["page", "card"]) for (const ink of ["ink", "soft", "bad"]) {
      const [low, high] = [light(scheme[ink]), light(scheme[ground])].sort(order);
      assert((high + .05) / (low + .05) >= 4.5, `${ink} on ${ground}: ${((high + .05) / (low + .05)).toFixed(2)}`);
    }
  }
}

// The page opens with the comparison: a row for each policy, and its bars.
function judgePolicies(page) {
  const [first] = page.main.all("section"), [trace] = page.data.traces, names = ["ashlar", "pytorch", "pytorch-expandable", "planned"];
  assert.strictEqual(first.id, "policies", "the page opens with the comparison");
  same(trace.policies.map(policy => policy.policy), names);
  const rows = first.all("table")[1].all("tbody")[0].all("tr").map(row => row.all("td").map(cell => cell.textContent));
  same(rows.map(row => row[0]), names);
  for (const [i, policy] of trace.policies.entries()) {
    assert(rows[i].includes(policy.calls.toLocaleString("en-US")), "the driver's calls");
    assert(policy.timeline.length > 100 && Math.max(...policy.timeline) === policy.peak_reserved_bytes, "what it reserved over time");
  }
  const [bars] = first.all("canvas");
  for (const {peak_reserved_bytes: most} of trace.policies) {
    const ratio = (most / trace.peak_requested_bytes).toFixed(3);
    assert(bars.written.some(({text}) => text === ratio) && bars.attributes["aria-label"].includes(ratio), `the bar of ${ratio}`);
  }
  assert(page.main.all("h3").some(node => node.textContent === "Plan of stream 7: offsets over time"), "the plan's picture");
}

async function main() {
  const list = traceOf(10000, 300, 7), every = [...Array(100).keys()].map(k => k * 100).concat([1, 4095, 4096, 4097, 9999]);
  write("made.trace", list);
  run("replay", "made.trace", "--report", "made.html");
  run("replay", "made.trace", "--planned", "--report", "planned.html");
  run("plan", "--from-trace", "made.trace", "--time-limit", "0", "--report", "plan.html");
  const file = name => path.join(folder, name);

  const page = open(file("made.html"), {wanted});
  await settled(page);
  judgePeak(page, await judgeMap(page, list, every));
  judgeAccess(page);
  judgeContrast(page);
  await judgeSlider(page, list);
  const about = page.main.textContent;
  for (const text of [page.data.made.processor, page.data.made.date, "What the words mean", "peak live"]) {
    assert(about.includes(text), `the page does not say: ${text}`);
  }

  run("replay", "made.trace", "--policy", "all", "--report", "compared.html");
  const compared = open(file("compared.html"), {wanted});
  await settled(compared);
  judgePeak(compared, await judgeMap(compared, list, every));
  judgeAccess(compared);
  judgePolicies(compared);

  const planned = open(file("planned.html"), {wanted});
  await settled(planned);
  await judgeMap(planned, list, every);
  judgeAccess(planned);
  assert(planned.main.textContent.includes("Plan of stream 7: offsets over time"), "the plan's picture");

  for (const name of ["made.html", "compared.html", "planned.html", "plan.html"]) {
    for (const width of [310, 1240]) {
      const seen = open(file(name), {width});
      await settled(seen);
      judgeLabels(seen);
      judgeAccess(seen);
    }
  }

  // A browser that cannot unpack shows the map at the peak, and says so.
  const old = open(file("made.html"), {without: ["DecompressionStream"]});
  await settled(old);
  assert(old.main.textContent.includes("the map is that at the peak"));
  assert.strictEqual(old.main.all("input").length, 0);
  assert(old.main.all("canvas").length >= 2);

  const long = traceOf(200700, 40, 3);
  write("long.trace", long);
  run("replay", "long.trace", "--report", "long.html");
  const window = open(file("long.html"), {wanted});
  await settled(window);
  const {first, end} = window.data.traces[0].moments;
  assert.strictEqual(end - first, 200000, "of a long trace the events around the peak");
  await judgeMap(window, long, [0, 100, 600, 699, 700, 701, 5000, 100000, 150000, 199999, 200600, 200699]);
  assert(window.main.textContent.includes("The slider covers 200,000 of 200,700 events"), "and the page says so");
}

main().then(() => console.log("the pages show what the traces say"), error => { console.error(error); process.exit(1); });
