// The comparison of allocation policies that a page of `ashlar replay --policy` opens with; CMakeLists.txt inserts it. A trace's
// policies are those of json_output.cc: {policy: its name, peak_reserved_bytes, used, smallest_capacity_bytes, calls, waits, ooms}, and
// {timeline: the most that it reserved in each of as many equal parts of the events}.

const policyColours = {ashlar: "allocated", pytorch: "reserved", "pytorch-expandable": "transfer", planned: "requested"};
const policyColour = name => policyColours[name] || "edge";

// Each policy's figures over all traces.
function policySums(traces) {
  const names = [...new Set(traces.flatMap(trace => trace.policies.map(one => one.policy)))];
  return names.map(name => {
    const own = traces.flatMap(trace => trace.policies.filter(policy => policy.policy === name));
    const sum = of => own.reduce((all, policy) => all + of(policy), 0), used = own.map(policy => policy.used);
    return {name, cells: [count(own.length), percent(sum(policy => policy.used) / own.length), percent(Math.min(...used)),
      count(sum(policy => policy.calls)), count(sum(policy => policy.waits)), count(sum(policy => policy.ooms))],
      bad: [sum(policy => policy.ooms) ? 5 : -1]};
  });
}

// A bar for each policy of each trace: peak reserved over peak live. The line is at 1, which no policy gets under.
function policyBars(parent, traces) {
  const thick = 12, head = 18, gap = 10, foot = 18, most = Math.max(1, ...traces.flatMap(trace => ratios(trace))) * 1.06;
  const heights = traces.map(trace => head + thick * trace.policies.length + gap);
  const label = "Peak reserved over peak live, by trace and policy: " + traces.map(trace => trace.trace + ": " +
    trace.policies.map((policy, i) => `${policy.policy} ${ratios(trace)[i].toFixed(3)}`).join(", ")).join("; ");
  const names = [...new Set(traces.flatMap(trace => trace.policies.map(one => one.policy)))];
  legend(parent, names.map(name => [`var(--${policyColour(name)})`, name]));
  const right = 46, rowAt = y => {
    let top = 0;
    const i = heights.findIndex(height => y < (top += height));
    return i < 0 ? null : {trace: traces[i], policy: traces[i].policies[Math.floor((y - top + heights[i] - head) / thick)]};
  };
  plot(parent, label, () => heights.reduce((a, b) => a + b, foot), (pen, width, height) => {
    const xOf = ratio => ratio / most * (width - right);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    let top = 0;
    traces.forEach((trace, t) => {
      pen.fillStyle = colour("ink");
      pen.fillText(fitted(pen, trace.trace, width), 0, top + head / 2);
      trace.policies.forEach((policy, i) => {
        const y = top + head + i * thick, ratio = ratios(trace)[i];
        pen.fillStyle = colour(policyColour(policy.policy));
        pen.fillRect(0, y, xOf(ratio), thick - 2);
        pen.fillStyle = colour("soft");
        pen.fillText(ratio.toFixed(3), xOf(ratio) + 5, y + thick / 2 - 1);
      });
      top += heights[t];
    });
    pen.fillStyle = colour("ink");
    pen.fillRect(Math.round(xOf(1)), 0, 1, top);
    pen.textBaseline = "top";
    tickLabel(pen, "peak live", xOf(1), top + 4, width);
  }, at => {
    const row = rowAt(at.y);
    if (!row || !row.policy) return null;
    const {trace, policy} = row;
    return [["trace", trace.trace], ["policy", policy.policy], ["peak reserved", bytes(policy.peak_reserved_bytes)],
      ["peak live", bytes(trace.peak_requested_bytes)]];
  });
}

const ratios = trace => trace.policies.map(policy => policy.peak_reserved_bytes / Math.max(1, trace.peak_requested_bytes));

// The text as far as it fits.
function fitted(pen, text, width) {
  while (text.length > 4 && pen.measureText(text).width > width) text = text.slice(0, -4) + "...";
  return text;
}

// The whole section; absent where no trace was run by several policies.
function policyComparison(parent, traces) {
  const compared = traces.filter(trace => trace.policies && trace.policies.length > 0);
  if (!compared.length) return;
  const card = make("section", {className: "card", id: "policies"}, make("h2", {textContent: "Allocation policies compared"}));
  parent.append(card);
  const head = ["policy", "traces", "used %, mean", "used %, least", "driver calls", "waits", "OOM"];
  card.append(scrollingTable("scroll", `Over ${counted(compared.length, "trace")}`, head, policySums(compared)));
  card.append(make("h3", {textContent: "Peak reserved, as a multiple of peak live"}));
  policyBars(card, compared);
  const rows = compared.flatMap(trace => trace.policies.map(policy => ({name: trace.trace, link: "#t" + traces.indexOf(trace),
    bad: [policy.ooms ? 6 : -1], cells: [policy.policy, bytes(policy.peak_reserved_bytes), percent(policy.used),
      policy.smallest_capacity_bytes === null ? "-" : bytes(policy.smallest_capacity_bytes), count(policy.calls), count(policy.waits),
      count(policy.ooms)]})));
  card.append(scrollingTable("scroll", "By trace",
    ["trace", "policy", "peak reserved", "used %", "smallest capacity", "driver calls", "waits", "OOM"], rows));
}

// What each policy has reserved over the events of a trace.
function policyTimelines(parent, trace) {
  const lines = (trace.policies || []).filter(policy => policy.timeline.length);
  if (!lines.length) return;
  parent.append(make("h3", {textContent: "Reserved by each policy over time"}));
  legend(parent, lines.map(line => [`var(--${policyColour(line.policy)})`, line.policy]));
  const left = 76, right = 14, top = 10, bottom = 34, events = trace.timeline.events;
  const peak = Math.max(1, ...lines.map(line => line.peak_reserved_bytes)) * 1.04;
  const label = "Reserved over time: " + lines.map(line => `${line.policy} at most ${bytes(line.peak_reserved_bytes)}`).join(", ");
  const eventAt = (x, width) => (x - left) / (width - left - right) * events;
  plot(parent, label, () => 220, (pen, width, height, at) => {
    const w = width - left - right, h = height - top - bottom;
    const yOf = timeAxes(pen, {left, right, top, w, h, width}, peak, 4, events);
    for (const line of lines) {
      pen.strokeStyle = colour(policyColour(line.policy));
      pen.lineWidth = 1.5;
      pen.beginPath();
      line.timeline.forEach((value, i) => {
        pen.lineTo(left + i / line.timeline.length * w, yOf(value));
        pen.lineTo(left + (i + 1) / line.timeline.length * w, yOf(value));
      });
      pen.stroke();
    }
    if (at && at.x >= left && at.x <= width - right) { pen.fillStyle = colour("ink"); pen.fillRect(Math.round(at.x), top, 1, h); }
  }, (at, width) => {
    const event = eventAt(at.x, width);
    if (event < 0 || event >= events) return null;
    return [["event", count(Math.floor(event))],
      ...lines.map(line => [line.policy, bytes(line.timeline[Math.floor(event / events * line.timeline.length)])])];
  });
}
