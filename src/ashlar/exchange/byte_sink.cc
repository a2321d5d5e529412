#include <ashlar/exchange/byte_sink.h>

#include <cstdio>
#include <memory>

namespace ashlar::inline v0::exchange {

ByteSink string_sink(std::string* text) {
  return [text](std::string_view bytes) {
    text->append(bytes);
    return true;
  };
}

Result<ByteSink> file_sink(const std::string& path) {
  std::FILE* const opened = std::fopen(path.c_str(), "wb");
  ASHLAR_REQUIRE(opened != nullptr, Code::kWriteFailed, "the file cannot be opened for writing");
  const std::shared_ptr<std::FILE> file(opened, [](std::FILE* f) { std::fclose(f); });
  // Writers collect 64 KiB themselves; unbuffered, each failure is the answer of the write it is in.
  std::setvbuf(file.get(), nullptr, _IONBF, 0);
  return ByteSink([file](std::string_view bytes) {
    return std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  });
}

}  // namespace ashlar::inline v0::exchange
