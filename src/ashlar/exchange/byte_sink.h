// Where written files go: a function that takes their bytes.
//
// Thread safety: one caller at a time.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>

namespace ashlar::inline v0::exchange {

/// Takes the next bytes of a file, in order; pieces are at most kSinkBytesMax long. Returns false if it
/// cannot take them: the writer then calls it no more, and reports kWriteFailed. What it throws is
/// passed on, except by TraceWriter.
using ByteSink = std::function<bool(std::string_view bytes)>;

/// The longest piece that a sink gets at once.
inline constexpr std::size_t kSinkBytesMax = std::size_t{64} << 10;

/// A sink that appends to `*text`, which outlives it. The sink throws std::bad_alloc.
ASHLAR_API ByteSink string_sink(std::string* text);

/// A sink that writes to the file at `path`. A regular file is created, or emptied; a device node or a
/// FIFO is written to as it is. The file is closed with the sink's last copy. kWriteFailed: it cannot be
/// opened. Throws std::bad_alloc; the sink itself never throws.
ASHLAR_API Result<ByteSink> file_sink(const std::string& path);

}  // namespace ashlar::inline v0::exchange
