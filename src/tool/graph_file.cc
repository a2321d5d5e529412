#include "src/tool/graph_file.h"

#include <nlohmann/json.hpp>

#include <ashlar/base/checked.h>

#include "src/tool/files.h"
#include "src/tool/known_file.h"

namespace ashlar::tool {
namespace {

using Json = nlohmann::json;
using graph::kNoTensor;
using graph::TensorId;
using graph::TensorSpec;

/// Text of the file that is quoted in a message: printable, and not long.
std::string quoted(const std::string& text) {
  return "'" + printable(text.substr(0, 40)) + (text.size() > 40 ? "...'" : "'");
}

/// Reads the lines of one graph.
class GraphReader {
 public:
  bool take_line(std::string_view line) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded() || !json.is_object()) return fail("the line is no JSON object");
    const auto rec = json.find("rec");
    if (rec == json.end() || !rec->is_string()) return fail("'rec' is missing");
    const bool is_first = !has_meta_;
    has_meta_ = true;
    if (is_first) return *rec == "meta" ? take_meta(json) : fail("the first line is not 'meta'");
    if (*rec != "tensor") return fail("'rec' is not 'tensor'");
    return take_tensor(json);
  }

  bool has_meta() const { return has_meta_; }
  /// Whether there are as many nodes as the first line says, if it does.
  bool is_whole() {
    if (!stated_nodes_ || *stated_nodes_ == file_.nodes) return true;
    return fail("the file ends after " + std::to_string(file_.nodes) + " of " +
                std::to_string(*stated_nodes_) + " nodes");
  }
  const std::string& reason() const { return reason_; }
  GraphFile& file() { return file_; }

 private:
  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  bool take_meta(const Json& json) {
    const auto align = json.find("align");
    if (align != json.end()) {
      if (!align->is_number_unsigned() || !is_power_of_two(align->get<std::uint64_t>()) ||
          align->get<std::uint64_t>() > 65536)
        return fail("'align' is not a power of two up to 65536");
      file_.alignment = Bytes{align->get<std::uint64_t>()};
    }
    const auto nodes = json.find("n_nodes");
    if (nodes != json.end() && nodes->is_number_unsigned())
      stated_nodes_ = nodes->get<std::uint64_t>();
    const auto peer = json.find("gallocr_bytes");
    if (peer != json.end() && peer->is_number_unsigned())
      file_.peer_bytes = Bytes{peer->get<std::uint64_t>()};
    return true;
  }

  bool take_tensor(const Json& json) {
    TensorSpec spec;
    const auto id = json.find("id");
    const std::size_t next = file_.graph.tensors().size();
    if (id == json.end() || !id->is_number_unsigned() || id->get<std::uint64_t>() != next)
      return fail("'id' is not " + std::to_string(next) + ", the next one");
    if (!take_names(json, &spec) || !take_layout(json, &spec) || !take_sources(json, &spec) ||
        !take_view(json, &spec) || !take_flags(json, &spec))
      return false;
    const Result<TensorId> added = file_.graph.add(spec);
    if (!added.is_ok()) return fail(added.status().why());
    const auto kind = json.find("kind");
    const bool computes = spec.operation != graph::Operation::kNone;
    if (kind == json.end() ? computes : *kind == "node") file_.nodes += 1;
    const auto layer = json.find("layer");
    const bool has_layer = layer != json.end() && layer->is_number_integer();
    const std::int64_t number = has_layer ? layer->get<std::int64_t>() : -2;
    if (number < -2 || number > 1'000'000) return fail("'layer' is out of range");
    file_.layers.push_back(static_cast<std::int32_t>(number));
    return check_bytes(json);
  }

  bool take_names(const Json& json, TensorSpec* spec) {
    const auto name = json.find("name");
    if (name != json.end() && name->is_string()) spec->name = name->get<std::string>();
    const auto op = json.find("op");
    if (op == json.end() || !op->is_string()) return fail("'op' is missing");
    const auto operation = graph::operation_of(op->get_ref<const std::string&>());
    if (!operation) return fail("unknown op " + quoted(op->get<std::string>()));
    spec->operation = *operation;
    const auto type = json.find("type");
    if (type == json.end() || !type->is_string()) return fail("'type' is missing");
    const auto element = graph::element_type_of(type->get_ref<const std::string&>());
    if (!element) return fail("unknown type " + quoted(type->get<std::string>()));
    spec->type = *element;
    return true;
  }

  bool take_four(const Json& json, const char* key,
                 std::array<std::uint64_t, graph::kDimensions>* out) {
    const auto list = json.find(key);
    if (list == json.end() || !list->is_array() || list->size() != out->size())
      return fail(std::string("'") + key + "' is not a list of four numbers");
    for (std::size_t d = 0; d < out->size(); ++d) {
      if (!(*list)[d].is_number_unsigned())
        return fail(std::string("'") + key + "' has an entry that is no number from 0");
      (*out)[d] = (*list)[d].get<std::uint64_t>();
    }
    return true;
  }

  bool take_layout(const Json& json, TensorSpec* spec) {
    if (!take_four(json, "ne", &spec->shape) || !take_four(json, "nb", &spec->strides))
      return false;
    if (spec->strides == graph::Strides{}) return fail("'nb' has only zeros");
    return true;
  }

  /// A tensor's id, of any size: the graph says whether it may be used there.
  bool take_id(const Json& json, const char* key, TensorId* out) {
    if (!json.is_number_unsigned() || json.get<std::uint64_t>() >= kNoTensor.value())
      return fail(std::string("'") + key + "' has an entry that is no tensor's id");
    *out = TensorId{json.get<std::uint32_t>()};
    return true;
  }

  bool take_sources(const Json& json, TensorSpec* spec) {
    const auto sources = json.find("srcs");
    if (sources == json.end()) return true;
    if (!sources->is_array()) return fail("'srcs' is not a list");
    const TensorId own{static_cast<std::uint32_t>(file_.graph.tensors().size())};
    for (const Json& entry : *sources) {
      TensorId source = kNoTensor;
      if (!entry.is_null() && !take_id(entry, "srcs", &source)) return false;
      const bool is_cast = spec->operation == graph::Operation::kCpy && source == own;
      spec->sources.push_back(is_cast ? kNoTensor : source);
    }
    return true;
  }

  bool take_view(const Json& json, TensorSpec* spec) {
    const auto source = json.find("view_src");
    if (source == json.end() || source->is_null()) return true;
    if (!take_id(*source, "view_src", &spec->view_source)) return false;
    const auto offset = json.find("view_offs");
    if (offset == json.end()) return true;
    if (!offset->is_number_unsigned()) return fail("'view_offs' is no number from 0");
    spec->view_offset = Bytes{offset->get<std::uint64_t>()};
    return true;
  }

  bool take_flags(const Json& json, TensorSpec* spec) {
    const auto prealloc = json.find("prealloc");
    const bool is_external = prealloc != json.end() && *prealloc == true;
    if (is_external && spec->view_source == kNoTensor) spec->flags |= graph::kExternal;
    const auto flags = json.find("flags");
    if (flags == json.end()) return true;
    if (!flags->is_array()) return fail("'flags' is not a list");
    for (const Json& flag : *flags) {
      if (flag == "input") {
        spec->flags |= graph::kInput;
      } else if (flag == "output" || flag == "loss") {
        spec->flags |= graph::kOutput;
      } else if (flag == "param") {
        if (spec->view_source == kNoTensor) spec->flags |= graph::kParameter;
      } else {
        return fail("unknown flag " + quoted(flag.is_string() ? flag.get<std::string>() : ""));
      }
    }
    return true;
  }

  bool check_bytes(const Json& json) {
    const auto bytes = json.find("bytes");
    if (bytes == json.end()) return true;
    const Bytes extent = file_.graph.tensors().back().extent;
    if (bytes->is_number_unsigned() && bytes->get<std::uint64_t>() == extent.count()) return true;
    return fail("'bytes' is not " + std::to_string(extent.count()) +
                ", what shape and strides need");
  }

  GraphFile file_;
  std::optional<std::uint64_t> stated_nodes_;
  bool has_meta_ = false;
  std::string reason_;
};

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) out += c >= ' ' && c < 127 ? c : '?';
  return out;
}

std::optional<GraphFile> parse_graph(std::string_view text, std::string_view name,
                                     std::string* error) {
  GraphReader reader;
  std::uint64_t line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = text.find('\n');
    if (!reader.take_line(text.substr(0, end))) {
      *error = std::string(name) + ":" + std::to_string(line) + ": " + reader.reason();
      return std::nullopt;
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (!reader.has_meta()) {
    *error = std::string(name) + ":1: the file is empty";
    return std::nullopt;
  }
  if (!reader.is_whole()) {
    *error = std::string(name) + ":" + std::to_string(line) + ": " + reader.reason();
    return std::nullopt;
  }
  return std::move(reader.file());
}

std::optional<GraphFile> read_graph(const std::string& path, std::string* error) {
  auto bytes = read_file(path, error);
  if (!bytes) return std::nullopt;
  const bool is_plain = !is_gzip(*bytes);
  const auto text = unpacked(std::move(*bytes), path, error);
  if (!text) return std::nullopt;
  auto graph = parse_graph(*text, path, error);
  if (!graph && is_plain) *error = refusal_of(path, *text, KnownFile::kGraph, *error);
  return graph;
}

}  // namespace ashlar::tool
