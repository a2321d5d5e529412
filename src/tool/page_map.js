// The address map of a trace at any moment; CMakeLists.txt inserts it into the page of `ashlar replay`. The records are those
// that map_records.h describes: decoded once, and replayed to a moment from the keyframe before it.

// The bytes of a base64 text of gzip.
async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The numbers of a list of LEB128 numbers. Not by shifts: they are longer than 32 bits.
function* numbersOf(list) {
  let value = 0, unit = 1;
  for (const byte of list) {
    value += (byte & 127) * unit;
    unit *= 128;
    if (byte < 128) { yield value; value = 0; unit = 1; }
  }
}

const isAdded = kind => kind === 0 || kind === 2;
const recordsBetweenKeyframes = 4096;

// The records as columns: the event, the kind (0 a block, 1 its free, 2 a range of memory, 3 its end), and the index of its block or
// range. A block is {address, size, requested, stream}, a range {address, size, is_small}.
function recordsOf(first, list) {
  const numbers = numbersOf(list), next = () => numbers.next().value;
  const signed = n => n % 2 ? -(n + 1) / 2 : n / 2;
  const records = {event: [], kind: [], index: [], blocks: [], ranges: []};
  let event = first, address = 0;
  for (let head = next(); head !== undefined; head = next()) {
    const kind = head % 4, known = kind < 2 ? records.blocks : records.ranges;
    event += Math.floor(head / 4);
    records.event.push(event);
    records.kind.push(kind);
    records.index.push(isAdded(kind) ? known.length : known.length - 1 - next());
    if (!isAdded(kind)) continue;
    address += signed(next());
    const size = next();
    if (kind === 0) known.push({address, size, requested: size - next(), stream: next()});
    else known.push({address, size: Math.floor(size / 2), is_small: size % 2 === 1});
  }
  return records;
}

// Where the addresses of a pool are drawn: on one line, without those that never have memory, which is folded into rows. The same
// address has the same place at every moment. {extents: [{address, size, at}], across: the bytes of a row, rows: how many}.
function placesOf(ranges, isSmall) {
  const extents = [], rowsWanted = isSmall ? 10 : 24, step = 2 ** 21;
  let sum = 0;
  for (const {address, size} of ranges.filter(range => range.is_small === isSmall).sort((a, b) => a.address - b.address)) {
    const last = extents[extents.length - 1];
    if (last && address <= last.address + last.size) last.size = Math.max(last.size, address + size - last.address);
    else extents.push({address, size, at: 0});
  }
  for (const extent of extents) { extent.at = sum; sum += extent.size; }
  const across = Math.max(1, Math.ceil(sum / rowsWanted / step)) * step;
  return {extents, across, rows: Math.ceil(sum / across)};
}

// The bytes as pieces {row, at, size}, one for each row that they are in; none for bytes that the pool never has.
function piecesOf(pool, address, size) {
  const extent = pool.extents[lastUpTo(pool.bases ||= pool.extents.map(one => one.address), address)], pieces = [];
  if (!extent || address >= extent.address + extent.size) return pieces;
  for (let at = extent.at + address - extent.address, end = at + size; at < end;) {
    const row = Math.floor(at / pool.across), stop = Math.min(end, (row + 1) * pool.across);
    pieces.push({row, at: at - row * pool.across, size: stop - at});
    at = stop;
  }
  return pieces;
}

// A function that gives what is there after an event: {blocks, ranges}, both by address.
function momentsOf(records) {
  const frames = [], blocks = new Set(), ranges = new Set();
  const apply = (i, blocks, ranges) => {
    const all = records.kind[i] < 2 ? blocks : ranges;
    if (isAdded(records.kind[i])) all.add(records.index[i]); else all.delete(records.index[i]);
  };
  for (let i = 0; i < records.event.length; ++i) {
    if (i % recordsBetweenKeyframes === 0) frames.push([[...blocks], [...ranges]]);
    apply(i, blocks, ranges);
  }
  const sorted = (set, known) => [...set].map(i => known[i]).sort((a, b) => a.address - b.address);
  return event => {
    const last = lastUpTo(records.event, event), frame = Math.floor(Math.max(last, 0) / recordsBetweenKeyframes);
    const [blocks, ranges] = (frames[frame] || [[], []]).map(list => new Set(list));
    for (let i = frame * recordsBetweenKeyframes; i <= last; ++i) apply(i, blocks, ranges);
    return {blocks: sorted(blocks, records.blocks), ranges: sorted(ranges, records.ranges)};
  };
}

// The blocks of a moment that are in the pool whose ranges these are.
function blocksWithin(blocks, ranges) {
  const bases = ranges.map(range => range.address);
  return blocks.filter(block => {
    const range = ranges[lastUpTo(bases, block.address)];
    return range && block.address + block.size <= range.address + range.size;
  });
}

// Draws the memory of a pool, row by row. Area is proportional to bytes. The result draws another moment.
function addressMap(parent, title, pool, isSmall, sizes) {
  const low = Math.log2(Math.max(1, sizes.reduce((a, b) => Math.min(a, b), 2 ** 40)));
  const high = Math.log2(sizes.reduce((a, b) => Math.max(a, b), 2));
  const tall = pool.rows > 30 ? 12 : pool.rows > 12 ? 16 : 22, gap = 4, heading = make("h3");
  let ranges = [], blocks = [];
  parent.append(heading);
  const redraw = plot(parent, title, () => Math.max(1, pool.rows) * (tall + gap), (pen, width, height, at) => {
    const hatched = hatchedOf(pen), shades = [];
    for (let t = 0; t <= 32; ++t) shades.push(mix(colour("live0"), colour("live1"), t / 32));
    const pieces = (address, size, use) => piecesOf(pool, address, size).forEach(piece =>
      use(piece.at / pool.across * width, piece.row * (tall + gap), piece.size / pool.across * width));
    const outline = ({address, size}, style, thick) => {
      pen.strokeStyle = style;
      pen.lineWidth = thick;
      pieces(address, size, (x, y, wide) => pen.strokeRect(x + .5, y + .5, Math.max(wide - 1, .5), tall - 1));
    };
    pen.clearRect(0, 0, width, height);
    pen.fillStyle = hatched;
    for (const range of ranges) pieces(range.address, range.size, (x, y, wide) => pen.fillRect(x, y, wide, tall));
    for (const {address, size, requested} of blocks) {
      const t = high > low ? (Math.log2(Math.max(1, size)) - low) / (high - low) : 1;
      pen.fillStyle = shades[Math.round(32 * Math.max(0, Math.min(1, t)))];
      pieces(address, size, (x, y, wide) => pen.fillRect(x, y, Math.max(wide - (wide > 3 ? .6 : 0), .35), tall));
      if ((size - requested) / pool.across * width < .5) continue;
      pen.fillStyle = colour("slack");
      pieces(address + requested, size - requested, (x, y, wide) => pen.fillRect(x, y, wide, tall));
    }
    for (const range of ranges) outline(range, colour("edge"), 1);
    const hit = at && find(at, width);
    if (hit && hit.block) outline(hit.block, colour("ink"), 1.5);
  }, (at, width) => {
    const hit = find(at, width);
    if (!hit) return null;
    const {block, range} = hit, about = [["of memory", bytes(range.size)]];
    if (!block) return [["free", "no block"], ...about];
    if (block.stream !== undefined) about.unshift(["stream", String(block.stream)]);
    return [["block", `live, ${bytes(block.size)}`], ["requested", bytes(block.requested)],
      ["offset", bytes(block.address - range.address)], ...about];
  });
  const find = (at, width) => {
    const byte = Math.floor(at.y / (tall + gap)) * pool.across + at.x / width * pool.across;
    const extent = pool.extents.find(one => byte >= one.at && byte < one.at + one.size);
    if (!extent) return null;
    const holds = one => address >= one.address && address < one.address + one.size, address = extent.address + byte - extent.at;
    const range = ranges.find(holds);
    return range ? {range, block: blocks.find(holds)} : null;
  };
  return moment => {
    ranges = moment.ranges.filter(range => range.is_small === isSmall);
    blocks = blocksWithin(moment.blocks, ranges);
    const sum = ranges.reduce((bytes, range) => bytes + range.size, 0);
    heading.textContent = `${title}: ${bytes(sum)} reserved, ${counted(blocks.length, "block")}; a full row is ${bytes(pool.across)}`;
    redraw();
  };
}
