// Reads JSON into a document of plain values (value_arena.h).
//
// Purpose: a memory snapshot may be stored as JSON of the same structure as the pickle. Not for small
// JSON texts of our own, which nlohmann-json reads by itself.
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/tool/value_arena.h"

namespace ashlar::tool {

/// Reads one JSON text of at most kDocumentBytesMax bytes, nested at most kDocumentDepthMax deep. On
/// failure `*error` is one line, `name: offset N: reason`. Throws std::bad_alloc if host memory runs out.
/// Cost: linear; 16 bytes a value and 4 in its container; texts by their length, short ones that repeat
/// once.
std::optional<Document> parse_json_document(std::string_view bytes, const std::string& name,
                                            std::string* error);

}  // namespace ashlar::tool
