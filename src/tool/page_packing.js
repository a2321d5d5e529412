// The picture of a plan, which the pages of `ashlar plan`, `ashlar graph` and `ashlar replay` share; CMakeLists.txt inserts it.
// A plan is what plan_report.cc writes: {from, span, spaces: [...]}.
// Numbers that a double does not hold exactly are strings. Number() is exact enough for the picture; text uses BigInt().
const exact = n => BigInt(n).toLocaleString("en-US");
const exactBytes = n => exact(n) + " B" + (Number(n) < 1024 ? "" : ` (${bytes(Number(n))})`);
const momentOf = (plan, t) => exact(BigInt(plan.from) + BigInt(t));
const periodOf = (plan, from, to) => `[${momentOf(plan, from)}, ${momentOf(plan, to)})`;
const short = text => text.length > 60 ? text.slice(0, 57) + "..." : text;

function boxesOf(space) {
  const boxes = space.boxes.map(row => {
    const [id, offset, size, alignment, pinned, group, bad, ...times] = row;
    const pieces = [];
    for (let k = 0; k < times.length; k += 2) pieces.push([Number(times[k]), Number(times[k + 1])]);
    return {id, offset, size, alignment, pinned, group, bad, times, pieces, low: Number(offset), tall: Number(size)};
  });
  return boxes.sort((a, b) => a.bad - b.bad || b.tall - a.tall);  // drawn in this order, so the small buffers of a group end up in front
}

// Draws bytes over time, and the packing below, of one space of a plan.
function packing(parent, plan, space) {
  const left = 76, right = 14, stripTop = 20, strip = 92, mapTop = 142, bottom = 36;
  const boxes = boxesOf(space), span = Number(plan.span), peak = Number(space.peak), bound = Number(space.lower_bound);
  const capacity = space.capacity === null ? null : Number(space.capacity);
  const isCapacityShown = capacity !== null && capacity <= 1.5 * peak;
  const top = Math.max(1, peak, isCapacityShown ? capacity : 0) * 1.02;
  const usage = {};
  for (const name of ["from", "least", "most", "end"]) usage[name] = space.usage[name].map(Number);
  const moments = usage.from.length;
  const sizes = boxes.map(box => Math.log2(box.tall));
  const small = sizes.reduce((a, b) => Math.min(a, b), 64), large = sizes.reduce((a, b) => Math.max(a, b), 0);
  const shade = box => large > small ? (Math.log2(box.tall) - small) / (large - small) : .5;
  const line = (name, dashed) => dashed
    ? `repeating-linear-gradient(90deg, var(--${name}) 0 4px, transparent 4px 6px) center / 12px 2px no-repeat`
    : `linear-gradient(var(--${name}), var(--${name})) center / 12px 2px no-repeat`;
  const entries = [["linear-gradient(90deg, var(--live0), var(--live1))", "buffer, small to large"],
    [hatchedKey, "wasted: below the highest end in use"],
    ["color-mix(in srgb, var(--requested) 80%, var(--card))", "bytes live"], [line("ink", true), "lower bound"]];
  if (space.cannot_fit) entries.splice(1, 0, ["var(--bad)", "cannot fit together"]);
  if (capacity !== null) entries.push([line("transfer"), isCapacityShown ? "capacity" : "capacity, above the picture"]);
  legend(parent, entries);

  const frame = (width, height) => {
    const w = width - left - right, h = height - mapTop - bottom;
    return {w, h, xOf: t => left + t / span * w, yOf: v => mapTop + h - v / top * h,
      stripOf: v => stripTop + strip - v / top * strip};
  };
  const rectangles = (pen, box, {xOf, yOf, h}, use) => {
    const y = yOf(box.low + box.tall), high = box.tall / top * h;
    for (const [from, to] of box.pieces) use(xOf(from), y, xOf(to) - xOf(from), high);
  };
  // Fills the area below the highest end.
  const fillBelowEnd = (pen, f) => {
    pen.beginPath();
    for (let i = 0; i < moments; ++i) {
      if (i) pen.lineTo(f.xOf(usage.from[i]), f.yOf(usage.end[i - 1]));
      pen.lineTo(f.xOf(usage.from[i]), f.yOf(usage.end[i]));
    }
    pen.lineTo(f.xOf(usage.from[0]), f.yOf(0));
    pen.fill();
  };
  // Fills the area below a series, by the minimum or the maximum in each half pixel, so that no spike is too thin to see.
  const fillStrip = (pen, f, values, pick) => {
    const columns = [], columnOf = t => 2 * (f.xOf(t) - left);
    for (let i = 0; i + 1 < moments; ++i) {
      const first = Math.floor(columnOf(usage.from[i])), end = Math.ceil(columnOf(usage.from[i + 1]));
      for (let c = first; c < end; ++c) columns[c] = columns[c] === undefined ? values[i] : pick(columns[c], values[i]);
    }
    pen.beginPath();
    pen.moveTo(left, f.stripOf(0));
    for (let c = 0; c < columns.length; ++c) {
      const y = f.stripOf(columns[c] || 0);
      pen.lineTo(left + c / 2, y);
      pen.lineTo(left + (c + 1) / 2, y);
    }
    pen.lineTo(left + columns.length / 2, f.stripOf(0));
    pen.fill();
  };
  const level = (pen, y, width, style, dash) => {
    pen.strokeStyle = colour(style);
    pen.lineWidth = 1.5;
    pen.setLineDash(dash);
    pen.beginPath(); pen.moveTo(left, y); pen.lineTo(width - right, y); pen.stroke();
    pen.setLineDash([]);
  };
  const drawBox = (pen, box, f, ink) => {
    const t = shade(box);
    pen.fillStyle = box.bad ? ink.bad : mix(ink.live0, ink.live1, t);
    rectangles(pen, box, f, (x, y, wide, high) => {
      pen.fillRect(x, y, Math.max(wide - (wide > 3 ? .7 : 0), .4), Math.max(high - (high > 3 ? .7 : 0), .4));
    });
    pen.fillStyle = box.bad || t > .5 ? ink.card : ink.ink;
    rectangles(pen, box, f, (x, y, wide, high) => {
      if (high < 13 || wide < 16 || pen.measureText(box.id).width > wide - 6) return;
      pen.fillText(box.id, x + wide / 2, y + high / 2);
    });
  };
  const inkNames = ["bad", "live0", "live1", "requested", "card", "ink"];
  const inks = () => Object.fromEntries(inkNames.map(name => [name, colour(name)]));
  const forBoxes = pen => { pen.font = "11px system-ui, sans-serif"; pen.textAlign = "center"; pen.textBaseline = "middle"; };

  const scales = (pen, f, width) => {
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const scale = (most, y) => {
      pen.textAlign = "right";
      for (const v of ticks(top, most, true)) {
        pen.fillStyle = colour("soft");
        pen.fillText(bytes(v).replace(/^[\d.]+/, parseFloat), left - 8, y(v));
        pen.fillStyle = colour("grid");
        pen.fillRect(left, Math.round(y(v)), f.w, 1);
      }
    };
    scale(2, f.stripOf);
    scale(8, f.yOf);
    pen.fillStyle = colour("soft");
    pen.textAlign = "left";
    pen.fillText("bytes live, highest end in use", left, stripTop - 10);
    pen.fillText("offset", left, mapTop - 10);
    pen.textBaseline = "top";
    const widest = pen.measureText(momentOf(plan, plan.span)).width + 40;
    for (const v of ticks(span, Math.max(1, f.w / widest), false)) tickLabel(pen, momentOf(plan, v), f.xOf(v), mapTop + f.h + 6, width);
    tickLabel(pen, "time", left + f.w / 2, mapTop + f.h + 21, width);
  };
  const paint = (pen, width, height) => {
    const f = frame(width, height), ink = inks();
    scales(pen, f, width);
    pen.fillStyle = hatchedOf(pen);
    fillBelowEnd(pen, f);
    fillStrip(pen, f, usage.end, Math.max);
    pen.fillStyle = mix(ink.card, ink.requested, .5);
    fillStrip(pen, f, usage.most, Math.max);
    pen.fillStyle = mix(ink.card, ink.requested, .8);
    fillStrip(pen, f, usage.least, Math.min);
    forBoxes(pen);
    for (const box of boxes) drawBox(pen, box, f, ink);
    level(pen, f.stripOf(bound), width, "ink", [6, 4]);
    if (isCapacityShown) level(pen, f.yOf(capacity), width, "transfer", []);
    level(pen, f.yOf(bound), width, "ink", [6, 4]);
  };

  const timeAt = (at, width) => (at.x - left) / (width - left - right) * span;
  const boxAt = (at, width, height) => {
    const t = timeAt(at, width), byte = (1 - (at.y - mapTop) / (height - mapTop - bottom)) * top;
    const isHere = box => byte >= box.low && byte < box.low + box.tall && box.pieces.some(([from, to]) => t >= from && t < to);
    return boxes.findLast(isHere);
  };
  const highlight = (pen, width, height, hit) => {
    const f = frame(width, height), ink = inks(), all = hit.group < 0 ? [hit] : boxes.filter(box => box.group === hit.group);
    if (all.length > 1) {
      pen.fillStyle = ink.card;
      pen.globalAlpha = .65; pen.fillRect(left, mapTop, f.w, f.h);
      pen.globalAlpha = 1;
      forBoxes(pen);
      for (const box of all) drawBox(pen, box, f, ink);
    }
    pen.strokeStyle = ink.ink;
    for (const box of all) {
      pen.lineWidth = box === hit ? 2 : 1;
      rectangles(pen, box, f, (x, y, wide, high) => pen.strokeRect(x, y, Math.max(wide, 1), Math.max(high, 1)));
    }
  };
  let layer = null;  // while the pointer is over the canvas: the picture without the highlight
  const label = `Packing: ${counted(space.buffers, "buffer")} by time and offset, peak ${bytes(peak)}, lower bound ${bytes(bound)}.`;
  plot(parent, label, width => mapTop + bottom + Math.max(260, Math.min(560, .45 * width)), (pen, width, height, at) => {
    pen.clearRect(0, 0, width, height);
    if (!at) {
      layer = null;
      paint(pen, width, height);
      return;
    }
    const look = [pen.canvas.width, pen.canvas.height, colour("card")].join();
    if (!layer || layer.look !== look) {
      layer = make("canvas", {width: pen.canvas.width, height: pen.canvas.height, look});
      const ink = layer.getContext("2d");
      ink.setTransform(pen.getTransform());
      paint(ink, width, height);
    }
    pen.drawImage(layer, 0, 0, width, height);
    const hit = boxAt(at, width, height);
    if (hit) {
      highlight(pen, width, height, hit);
    } else if (at.x >= left && at.x <= width - right) {
      pen.fillStyle = colour("ink");
      pen.fillRect(Math.round(at.x), stripTop, 1, height - bottom - stripTop);
    }
  }, (at, width, height) => {
    const hit = boxAt(at, width, height);
    if (hit) return aboutBox(plan, space, hit);
    if (at.x < left || at.x > width - right) return null;
    const t = timeAt(at, width), i = lastUpTo(usage.from, t), rows = [["time", momentOf(plan, Math.floor(t))]];
    const value = name => i < 0 ? 0 : space.usage[name][i];
    rows.push(["bytes live", exactBytes(value("most"))]);
    if (value("least") !== value("most")) rows.push(["at least", exactBytes(value("least"))]);
    rows.push(["highest end", exactBytes(value("end"))]);
    if (value("least") === value("most")) rows.push(["wasted", exactBytes(BigInt(value("end")) - BigInt(value("most")))]);
    return rows;
  });
}

const piecesNamed = 6;

function aboutBox(plan, space, box) {
  const times = box.times, last = times[times.length - 1];
  const rows = [["buffer", short(String(box.id))],
    ["lifetime", `${periodOf(plan, times[0], last)}, ${exact(BigInt(last) - BigInt(times[0]))} long`]];
  for (let k = 1; k + 1 < times.length && k < 2 * piecesNamed; k += 2) rows.push(["not in", periodOf(plan, times[k], times[k + 1])]);
  if (times.length > 2 * piecesNamed + 2) rows.push(["", `and ${count(times.length / 2 - 1 - piecesNamed)} more gaps`]);
  rows.push(["size", exactBytes(box.size)], ["offset", exactBytes(box.offset)]);
  if (Number(box.alignment) > 1) rows.push(["alignment", exactBytes(box.alignment)]);
  if (box.pinned !== -1) rows.push(["pinned at", exactBytes(box.pinned)]);
  if (box.group >= 0) {
    const [name, buffers] = space.groups[box.group];
    rows.push(["alias group", `${short(name)}, ${counted(buffers, "buffer")}`]);
  }
  if (box.bad) rows.push(["", "one of the buffers that cannot fit together"]);
  return rows;
}

// A space's picture under its heading, which says so where only some buffers are drawn.
function packingPicture(parent, plan, space, title) {
  parent.append(make("h3", {textContent: title}));
  if (space.boxes.length < space.buffers) {
    const text = `Drawn: ${count(space.boxes.length)} of ${counted(space.buffers, "buffer")}, ` +
      "the largest by size times time live. The packing shows the others as wasted; the live bytes are those of all buffers.";
    parent.append(make("div", {className: "legend", textContent: text}));
  }
  packing(parent, plan, space);
}
