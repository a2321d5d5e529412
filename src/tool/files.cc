#include "src/tool/files.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>

#include "src/tool/output_file.h"

namespace ashlar::tool {
namespace {

// zlib takes a pointer to mutable bytes, and does not change them.
Bytef* input_of(std::string_view bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
}

uInt portion(std::size_t size) {
  return static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
}

constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, in gzip's framing

}  // namespace

std::optional<std::string> read_file(const std::string& path, std::string* error) {
  const auto fail = [&](const char* why) {
    *error = path + ": " + why;
    return std::nullopt;
  };
  static bool is_stdin_read = false;
  const bool is_stdin = path == "-";
  if (is_stdin && is_stdin_read) return fail("standard input can be read only once");
  is_stdin_read = is_stdin_read || is_stdin;
  std::FILE* const file = is_stdin ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return fail(std::strerror(errno));
  std::string bytes;
  std::array<char, 65536> buffer;
  int failed = 0;
  while (bytes.size() <= kFileBytesMax) {
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file);
    bytes.append(buffer.data(), got);
    if (got < buffer.size()) {
      failed = std::ferror(file) != 0 ? errno : 0;
      break;
    }
  }
  if (!is_stdin) std::fclose(file);
  if (failed != 0) return fail(std::strerror(failed));
  if (bytes.size() > kFileBytesMax) return fail("larger than 2 GiB");
  return bytes;
}

bool write_file(const std::string& path, std::string_view bytes, KnownFile kind,
                std::string* error) {
  OutputFile file;
  return file.open(path, kind, error) && file.write(bytes, error);
}

bool is_gzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

const char* gunzip(std::string_view bytes, const std::function<bool(std::string_view)>& sink) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return "zlib does not start";
  std::array<char, 65536> buffer;
  const char* why = nullptr;
  std::size_t used = 0;
  int state = Z_OK;
  while (true) {
    if (state == Z_STREAM_END) {  // a gzip file may have several members
      if (used == bytes.size()) break;
      if (!is_gzip(bytes.substr(used))) why = "bytes follow the gzip data";
      if (why != nullptr || inflateReset(&stream) != Z_OK) break;
    }
    const std::size_t left = bytes.size() - used;
    stream.next_in = input_of(bytes.substr(used));
    stream.avail_in = portion(left);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = portion(buffer.size());
    const uInt offered = stream.avail_in;
    state = inflate(&stream, Z_NO_FLUSH);
    used += offered - stream.avail_in;
    const std::size_t got = buffer.size() - stream.avail_out;
    if (got > 0 && !sink(std::string_view(buffer.data(), got))) break;
    if (state == Z_BUF_ERROR || (state == Z_OK && got == 0 && used == bytes.size())) {
      why = "the gzip data is truncated";
      break;
    }
    if (state != Z_OK && state != Z_STREAM_END) {
      why = "the gzip data is damaged";
      break;
    }
  }
  inflateEnd(&stream);
  return why;
}

std::optional<std::string> unpacked(std::string bytes, const std::string& name,
                                    std::string* error) {
  if (!is_gzip(bytes)) return bytes;
  std::string plain;
  const char* broken = gunzip(bytes, [&plain](std::string_view piece) {
    plain += piece;
    return plain.size() <= kFileBytesMax;
  });
  if (broken == nullptr && plain.size() > kFileBytesMax) broken = "larger than 2 GiB when unpacked";
  if (broken == nullptr) return plain;
  *error = name + ": " + broken;
  return std::nullopt;
}

std::string_view without_bom(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  std::string out;
  if (deflateInit2(&stream, 9, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) != Z_OK) return out;
  std::array<char, 65536> buffer;
  std::size_t used = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    const uInt offered = portion(bytes.size() - used);
    stream.next_in = input_of(bytes.substr(used));
    stream.avail_in = offered;
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = portion(buffer.size());
    state = deflate(&stream, used + offered == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    used += offered - stream.avail_in;
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace ashlar::tool
