// Reads a memory snapshot as PyTorch's viewer does, and fails where the viewer would.
//
//   node viewer_replay.js NAME    reads NAME.pickle, NAME.json and NAME.live
//
// Restated in our own words from shared descriptions of the viewer: which opcodes its reader of pickles
// knows, and how it goes back from the segments through the events of a device. At each event, from the
// newest to the oldest, what is live must be what NAME.live says: the number of live and of pending
// blocks, their bytes, a hash of their addresses, and the bytes of memory. Exit 1, with the first
// difference, if not.
//
// What it does not prove: that the viewer draws what is in the file.
'use strict';
const fs = require('fs');

function fail(text) {
  throw new Error(text);
}

// The opcodes, by number: 'K' is 0x4b.
function readPickle(bytes) {
  let at = 0;
  let stack = [];
  const marked = [];  // the stacks below the marks
  const memo = new Map();
  const u8 = () => bytes[at++];
  const u16 = () => (at += 2, bytes.readUInt16LE(at - 2));
  const u32 = () => (at += 4, bytes.readUInt32LE(at - 4));
  const i32 = () => (at += 4, bytes.readInt32LE(at - 4));
  const text = (size) => (at += size, bytes.toString('utf8', at - size, at));
  const toMark = () => {
    const above = stack;
    stack = marked.pop();
    return above;
  };
  const known = (index) => memo.has(index) ? memo.get(index) : fail('memo ' + index + ' is empty');
  const long = (size) => {
    let value = 0n;
    for (let i = size - 1; i >= 0; --i) value = value << 8n | BigInt(bytes[at + i]);
    if (size > 0 && bytes[at + size - 1] > 127) value -= 1n << BigInt(8 * size);
    at += size;
    return size <= 8 ? Number(value) : value;
  };
  const setAll = (dict, list) => {
    for (let i = 0; i < list.length; i += 2) dict[list[i]] = list[i + 1];
  };
  for (;;) {
    const opcode = u8();
    switch (opcode) {
      case 0x80: {  // PROTO
        const version = u8();
        if (version < 2 || version > 4) fail('protocol ' + version);
        break;
      }
      case 0x95: at += 8; break;                                 // FRAME
      case 0x2e: return stack.pop();                             // STOP
      case 0x28: marked.push(stack); stack = []; break;          // MARK
      case 0x7d: stack.push({}); break;                          // EMPTY_DICT
      case 0x5d: stack.push([]); break;                          // EMPTY_LIST
      case 0x29: stack.push([]); break;                          // EMPTY_TUPLE
      case 0x73: {                                               // SETITEM
        const pair = stack.splice(-2);
        setAll(stack[stack.length - 1], pair);
        break;
      }
      case 0x75: {  // SETITEMS
        const pairs = toMark();
        setAll(stack[stack.length - 1], pairs);
        break;
      }
      case 0x61: {  // APPEND
        const value = stack.pop();
        stack[stack.length - 1].push(value);
        break;
      }
      case 0x65: {  // APPENDS: as arguments of one call, so that a long part is a stack overflow
        const values = toMark();
        stack[stack.length - 1].push(...values);
        break;
      }
      case 0x74: case 0x6c: {  // TUPLE, LIST
        const values = toMark();
        stack.push(values);
        break;
      }
      case 0x85: stack.push(stack.splice(-1)); break;            // TUPLE1
      case 0x86: stack.push(stack.splice(-2)); break;            // TUPLE2
      case 0x87: stack.push(stack.splice(-3)); break;            // TUPLE3
      case 0x4e: stack.push(null); break;                        // NONE
      case 0x88: stack.push(true); break;                        // NEWTRUE
      case 0x89: stack.push(false); break;                       // NEWFALSE
      case 0x4a: stack.push(i32()); break;                       // BININT
      case 0x4b: stack.push(u8()); break;                        // BININT1
      case 0x4d: stack.push(u16()); break;                       // BININT2
      case 0x8a: stack.push(long(u8())); break;                  // LONG1
      case 0x47: stack.push(bytes.readDoubleBE(at)); at += 8; break;  // BINFLOAT
      case 0x58: stack.push(text(u32())); break;                 // BINUNICODE
      case 0x8c: stack.push(text(u8())); break;                  // SHORT_BINUNICODE
      case 0x71: memo.set(u8(), stack[stack.length - 1]); break;   // BINPUT
      case 0x72: memo.set(u32(), stack[stack.length - 1]); break;  // LONG_BINPUT
      case 0x94: memo.set(memo.size, stack[stack.length - 1]); break;  // MEMOIZE
      case 0x68: stack.push(known(u8())); break;                 // BINGET
      case 0x6a: stack.push(known(u32())); break;                // LONG_BINGET
      default: fail('opcode 0x' + Number(opcode).toString(16) + ' at byte ' + (at - 1));
    }
  }
}

function checkFrames(frames) {
  if (!Array.isArray(frames)) fail('frames are no list');
  for (const frame of frames) {
    if (typeof frame.name !== 'string' || typeof frame.filename !== 'string')
      fail('a frame has no name or file name');
  }
}

const ACTIONS = new Set(['alloc', 'free_requested', 'free_completed', 'segment_alloc', 'segment_free',
  'segment_map', 'segment_unmap', 'snapshot', 'oom', 'annotate']);

// A request and its completion side by side become one 'free'; `place` is an event's number before.
function joinFrees(events) {
  const joined = [];
  events.forEach((event, place) => {
    if (!ACTIONS.has(event.action)) fail('an action that no viewer knows: ' + event.action);
    const before = joined[joined.length - 1];
    if (event.action === 'free_completed' && before !== undefined &&
        before.action === 'free_requested' && before.addr === event.addr) {
      before.action = 'free';
      return;
    }
    joined.push({...event, place});
  });
  return joined;
}

function hashOf(address) {
  const low = address >>> 0;
  const high = Math.floor(address / 4294967296) >>> 0;
  const mixed = Math.imul(low ^ Math.imul(high, 0x9e3779b1), 0x85ebca6b) >>> 0;
  return Math.imul(mixed ^ mixed >>> 15, 0xc2b2ae35) >>> 0;
}

// One device's memory, which goes back event by event.
class Memory {
  constructor(snapshot, device) {
    this.segments = [];
    this.blocks = new Map();
    this.reserved = 0;
    this.requested = 0;
    this.pending = 0;
    this.hash = 0;
    const own = snapshot.segments.filter((segment) => segment.device === device);
    for (const segment of own)
      this.insert({addr: segment.address, size: segment.total_size, stream: segment.stream});
    for (const segment of own) this.takeBlocks(segment);
  }

  takeBlocks(segment) {
    let next = segment.address;
    const sums = {allocated_size: 0, active_size: 0, requested_size: 0};
    for (const block of segment.blocks) {
      if (block.address !== next) fail('blocks do not tile the segment at ' + segment.address);
      next += block.size;
      checkFrames(block.frames);
      if (block.state === 'inactive') continue;
      const isPending = block.state === 'active_pending_free';
      if (!isPending && block.state !== 'active_allocated') fail('no such state: ' + block.state);
      this.addBlock(block.address, block.requested_size, isPending);
      sums.allocated_size += isPending ? 0 : block.size;
      sums.active_size += block.size;
      sums.requested_size += block.requested_size;
    }
    if (next !== segment.address + segment.total_size)
      fail('blocks do not tile the segment at ' + segment.address);
    for (const field of Object.keys(sums)) {
      if (segment[field] !== sums[field]) fail(field + ' is not the sum over the blocks');
    }
  }

  addBlock(addr, size, isPending) {
    if (!Number.isSafeInteger(addr)) fail('an address beyond 2^53: ' + addr);
    if (this.blocks.has(addr)) fail('two blocks at ' + addr);
    if (!this.segments.some((s) => s.addr <= addr && addr + size <= s.addr + s.size))
      fail('a block outside of all segments: ' + addr);
    this.blocks.set(addr, {size, isPending});
    this.requested += size;
    this.pending += isPending ? 1 : 0;
    this.hash = this.hash + hashOf(addr) * (isPending ? 3 : 1) >>> 0;
  }

  insert(segment) {
    const after = this.segments.findIndex((s) => s.addr > segment.addr);
    const at = after < 0 ? this.segments.length : after;
    this.segments.splice(at, 0, segment);
    this.reserved += segment.size;
    return at;
  }

  // Neighbours of one stream become one.
  insertMapped(segment) {
    const at = this.insert(segment);
    const next = this.segments[at + 1];
    if (next !== undefined && segment.addr + segment.size === next.addr &&
        segment.stream === next.stream) {
      segment.size += next.size;
      this.segments.splice(at + 1, 1);
    }
    const before = this.segments[at - 1];
    if (before !== undefined && before.addr + before.size === segment.addr &&
        before.stream === segment.stream) {
      before.size += segment.size;
      this.segments.splice(at, 1);
    }
  }

  remove(segment) {
    const at = this.segments.findIndex((s) => s.addr === segment.addr);
    if (at < 0 || this.segments[at].size !== segment.size)
      fail('no segment at ' + segment.addr + ' to go back from');
    this.segments.splice(at, 1);
    this.reserved -= segment.size;
  }

  removeMapped(range) {
    const end = range.addr + range.size;
    const at = this.segments.findIndex((s) => s.addr <= range.addr && end <= s.addr + s.size);
    if (at < 0) fail('no segment has the range at ' + range.addr);
    const whole = this.segments[at];
    const parts = [];
    if (whole.addr < range.addr) parts.push({...whole, size: range.addr - whole.addr});
    if (end < whole.addr + whole.size)
      parts.push({...whole, addr: end, size: whole.addr + whole.size - end});
    this.segments.splice(at, 1, ...parts);
    this.reserved -= range.size;
  }

  undo(event) {
    const {addr, size, stream} = event;
    switch (event.action) {
      case 'alloc': {
        const block = this.blocks.get(addr);
        if (block === undefined || block.isPending) fail('nothing is allocated at ' + addr);
        if (block.size !== size) fail('another size is allocated at ' + addr);
        this.blocks.delete(addr);
        this.requested -= size;
        this.hash = this.hash - hashOf(addr) >>> 0;
        break;
      }
      case 'free': this.addBlock(addr, size, false); break;
      case 'free_completed': this.addBlock(addr, size, true); break;
      case 'free_requested': {
        const block = this.blocks.get(addr);
        if (block === undefined || !block.isPending) fail('nothing is pending at ' + addr);
        block.isPending = false;
        --this.pending;
        this.hash = this.hash - 2 * hashOf(addr) >>> 0;
        break;
      }
      case 'segment_free': this.insert({addr, size, stream}); break;
      case 'segment_unmap': this.insertMapped({addr, size, stream}); break;
      case 'segment_alloc': this.remove({addr, size}); break;
      case 'segment_map': this.removeMapped({addr, size}); break;
      case 'annotate':
        if (typeof event.user_metadata !== 'string') fail('an annotation without text');
        break;
      case 'oom':
        if (typeof event.device_free !== 'number') fail('an out-of-memory without device_free');
        break;
    }
  }

  state() {
    return [this.blocks.size - this.pending, this.pending, this.requested, this.reserved,
      this.hash].join(' ');
  }
}

// "device N" and the states of its events, from the oldest, for each device.
function readStates(text) {
  const devices = new Map();
  let states;
  for (const line of text.split('\n')) {
    if (line.startsWith('device ')) {
      states = [];
      devices.set(Number(line.slice(7)), states);
    } else if (line !== '') {
      states.push(line);
    }
  }
  return devices;
}

function replay(snapshot, expected) {
  const traces = snapshot.device_traces.map(joinFrees);
  const categories = new Set();
  for (const trace of snapshot.device_traces) {
    for (const event of trace) {
      checkFrames(event.frames);
      if ('category' in event) categories.add(event.category);
    }
  }
  if (categories.size > 0 && !categories.has('unknown')) fail('categories without "unknown"');
  for (const segment of snapshot.segments) {
    if (traces[segment.device] === undefined) fail('no trace for device ' + segment.device);
    checkFrames(segment.frames);
  }
  for (const device of expected.keys()) {
    if (traces[device] === undefined) fail('no trace for device ' + device);
  }
  let compared = 0;
  traces.forEach((trace, device) => {
    const states = expected.get(device) || ['0 0 0 0 0'];
    const memory = new Memory(snapshot, device);
    const compare = (place) => {
      const state = memory.state();
      if (state !== states[place])
        fail('device ' + device + ', before event ' + place + ': ' + state + ', not ' + states[place]);
      ++compared;
    };
    if (snapshot.device_traces[device].length !== states.length - 1)
      fail('device ' + device + ' has ' + snapshot.device_traces[device].length + ' events');
    compare(states.length - 1);
    for (let i = trace.length - 1; i >= 0; --i) {
      memory.undo(trace[i]);
      compare(trace[i].place);
    }
  });
  return compared;
}

function main(name) {
  const expected = readStates(fs.readFileSync(name + '.live', 'utf8'));
  const pickled = readPickle(fs.readFileSync(name + '.pickle'));
  const compared = replay(pickled, expected);
  replay(JSON.parse(fs.readFileSync(name + '.json', 'utf8')), expected);
  console.log(name.replace(/.*\//, '') + ': ' + compared + ' states are equal');
}

try {
  main(process.argv[2]);
} catch (error) {
  console.log(process.argv[2] + ': ' + error.message);
  process.exit(1);
}
