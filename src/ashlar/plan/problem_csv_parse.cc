#include <charconv>
#include <concepts>

#include <ashlar/plan/csv_columns.h>
#include <ashlar/plan/name_numbers.h>
#include <ashlar/plan/problem_csv.h>

namespace ashlar::inline v0::plan {
namespace {

constexpr std::size_t kRowMin = 8;  // `a,0,1,1` and the line's end

// Reads a problem line by line. Each step returns false if the text is malformed; line() and
// reason() then say where and why.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool read() {
    if (text_.empty()) return fail_at(1, "the file is empty");
    next_line();
    if (!take_header()) return false;
    reserve();
    while (!text_.empty()) {
      next_line();
      if (row_.empty() && text_.find_first_not_of("\r\n") == std::string_view::npos) break;
      if (!take_row()) return false;
    }
    if (problem().spaces.empty()) problem().spaces.resize(1);  // a space column without a buffer
    const ProblemFault fault = check_problem(problem());
    if (fault.status.is_ok()) return true;
    std::string reason = fault.status.why();
    if (fault.other != fault.buffer)
      reason += " (line " + std::to_string(line_of(fault.other)) + ")";
    return fail_at(line_of(fault.buffer), std::move(reason));
  }

  ProblemCsv& csv() { return csv_; }
  std::size_t line() const { return line_; }
  const std::string& reason() const { return reason_; }

 private:
  Problem& problem() { return csv_.problem; }
  static std::size_t line_of(std::uint32_t buffer) { return std::size_t{buffer} + 2; }

  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }
  bool fail_at(std::size_t line, std::string reason) {
    line_ = line;
    return fail(std::move(reason));
  }
  bool fail_field(Column column, const char* what) {
    return fail(std::string(name_of(column)) + what);
  }

  // Moves the next line from text_ to row_.
  void next_line() {
    ++line_;
    const std::size_t end = text_.find('\n');
    row_ = text_.substr(0, end);
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
    if (!row_.empty() && row_.back() == '\r') row_.remove_suffix(1);
  }

  // Moves the next field from row_ to `*field`; false if there is none.
  bool next_field(std::string_view* field) {
    if (row_is_over_) return false;
    const std::size_t end = row_.find(',');
    *field = row_.substr(0, end);
    row_is_over_ = end == std::string_view::npos;
    row_.remove_prefix(row_is_over_ ? row_.size() : end + 1);
    return true;
  }

  bool take_header() {
    std::array<bool, kColumns> is_there{};
    row_is_over_ = false;
    for (std::string_view field; next_field(&field);) {
      const auto known = std::find(kColumnNames.begin(), kColumnNames.end(), field);
      if (known == kColumnNames.end()) {
        return fail(is_csv_name(field) && field.size() <= 40
                        ? "unknown column `" + std::string(field) + "`; known are " +
                              known_columns()
                        : "the header does not name columns");
      }
      const auto column = static_cast<std::size_t>(known - kColumnNames.begin());
      if (is_there[column]) return fail("column " + std::string(field) + " occurs twice");
      is_there[column] = true;
      columns_.push_back(static_cast<Column>(column));
    }
    for (std::size_t column = 0; column < kColumnsRequired; ++column) {
      if (!is_there[column])
        return fail(std::string("column ") + kColumnNames[column] + " is missing");
    }
    if (is_there[static_cast<std::size_t>(Column::kSpace)]) problem().spaces.clear();
    has_offsets_ = is_there[static_cast<std::size_t>(Column::kOffset)];
    return true;
  }

  static std::string known_columns() {
    std::string names;
    for (const char* name : kColumnNames) names += (names.empty() ? "" : ", ") + std::string(name);
    return names;
  }

  void reserve() {
    const auto lines = static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n')) + 1;
    rows_max_ = std::min(lines, text_.size() / kRowMin + 1);
    problem().buffers.reserve(rows_max_);
    if (has_offsets_) csv_.offsets.reserve(rows_max_);
  }

  bool take_row() {
    if (row_.empty()) return fail("the line is empty");
    if (problem().buffers.size() >= kBuffersMax) return fail("more than 2^28 buffers");
    problem().buffers.emplace_back();
    row_is_over_ = false;
    std::string_view field;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (!next_field(&field)) {
        return fail("the line has " + std::to_string(c) + " fields, the header " +
                    std::to_string(columns_.size()));
      }
      if (!take_field(columns_[c], field)) return false;
    }
    if (!row_is_over_) return fail("the line has more fields than the header");
    return true;
  }

  bool take_field(Column column, std::string_view field) {
    Buffer& buffer = problem().buffers.back();
    switch (column) {
      case Column::kId: return take_id(field);
      case Column::kLower: return take_number(column, field, &buffer.life.lower);
      case Column::kUpper: return take_number(column, field, &buffer.life.upper);
      case Column::kSize: return take_bytes(column, field, &buffer.size);
      case Column::kAlignment: return field.empty() || take_bytes(column, field, &buffer.alignment);
      case Column::kGaps: return take_gaps(field);
      case Column::kHint: return field.empty() || take_bytes(column, field, &buffer.hint);
      case Column::kPinned: return field.empty() || take_bytes(column, field, &buffer.pinned);
      case Column::kGroup: return field.empty() || take_group(field);
      case Column::kSpace: return take_space(field);
      case Column::kOffset:
        csv_.offsets.push_back(kNowhere);
        return field.empty() || take_bytes(column, field, &csv_.offsets.back());
    }
    return false;
  }

  // Most files number their buffers in order. As long as this one does, ids need no storage and no
  // search for duplicates.
  bool take_id(std::string_view field) {
    const std::size_t row = problem().buffers.size() - 1;
    if (ids_are_numbers_) {
      char digits[20];
      const char* const end = std::to_chars(digits, digits + sizeof digits, row).ptr;
      if (field == std::string_view(digits, static_cast<std::size_t>(end - digits))) return true;
      start_ids(row);
    }
    if (!is_csv_name(field)) return fail_name(Column::kId, field);
    problem().ids.emplace_back(field);
    const NameNumbers::Numbered known = ids_.number_of(problem().ids.back());
    return known.is_new ||
           fail("line " + std::to_string(line_of(known.number)) + " has the same id");
  }

  // Begins to store ids. REQUIRES: the ids of the first `rows` rows are their numbers.
  void start_ids(std::size_t rows) {
    ids_are_numbers_ = false;
    problem().ids.reserve(rows_max_);  // so that they never move: ids_ has views of them
    for (std::size_t b = 0; b < rows; ++b) {
      problem().ids.push_back(std::to_string(b));
      ids_.number_of(problem().ids.back());
    }
  }

  bool take_group(std::string_view field) {
    if (!is_csv_name(field)) return fail_name(Column::kGroup, field);
    const NameNumbers::Numbered group = groups_.number_of(field);
    if (group.is_new) problem().groups.emplace_back(field);
    problem().buffers.back().group = group.number;
    return true;
  }

  bool take_space(std::string_view field) {
    if (!is_csv_name(field)) return fail_name(Column::kSpace, field);
    const NameNumbers::Numbered space = spaces_.number_of(field);
    if (space.is_new) problem().spaces.push_back({std::string(field), kNowhere});
    problem().buffers.back().space = space.number;
    return true;
  }

  bool take_gaps(std::string_view field) {
    Buffer& buffer = problem().buffers.back();
    buffer.gaps_begin = static_cast<std::uint32_t>(problem().gaps.size());
    while (!field.empty()) {
      const std::size_t end = field.find(' ');
      const std::string_view gap = field.substr(0, end);
      field.remove_prefix(end == std::string_view::npos ? field.size() : end + 1);
      if (gap.empty()) continue;
      if (problem().gaps.size() >= kGapsMax) return fail("more than 2^30 gaps");
      if (!take_gap(gap)) return false;
    }
    buffer.gaps_end = static_cast<std::uint32_t>(problem().gaps.size());
    return true;
  }

  bool take_gap(std::string_view text) {
    if (text.find_first_of("@:") != std::string_view::npos) {
      return fail("a gap that keeps a window of offsets is not supported: only `lower-upper`");
    }
    Lifetime gap;
    const char* const end = text.data() + text.size();
    const auto [dash, bad_lower] = std::from_chars(text.data(), end, gap.lower);
    if (bad_lower != std::errc{} || dash == end || *dash != '-')
      return fail_field(Column::kGaps, " are not `lower-upper ...`");
    const auto [stop, bad_upper] = std::from_chars(dash + 1, end, gap.upper);
    if (bad_upper != std::errc{} || stop != end)
      return fail_field(Column::kGaps, " are not `lower-upper ...`");
    problem().gaps.push_back(gap);
    return true;
  }

  bool take_bytes(Column column, std::string_view field, Bytes* out) {
    std::uint64_t count = 0;
    if (!take_number(column, field, &count)) return false;
    if (count > kPlanBytesMax.count())
      return fail_field(column, " is over 2^62");  // so none is read as kNowhere
    *out = Bytes{count};
    return true;
  }

  template <std::integral T>
  bool take_number(Column column, std::string_view field, T* out) {
    if (field.empty()) return fail_field(column, " is missing");
    const char* const end = field.data() + field.size();
    const auto [stop, bad] = std::from_chars(field.data(), end, *out);
    if (bad == std::errc{} && stop == end) return true;
    const bool is_number =
        field.find_first_not_of("0123456789", field[0] == '-' ? 1 : 0) == std::string_view::npos;
    if (!is_number || field == "-") return fail_field(column, " is not a whole number");
    if (std::unsigned_integral<T> && field[0] == '-') return fail_field(column, " is negative");
    return fail_field(column, " does not fit in 64 bits");
  }

  bool fail_name(Column column, std::string_view field) {
    if (field.empty()) return fail_field(column, " is missing");
    if (field.size() > kCsvNameMax) return fail_field(column, " is longer than 1024 characters");
    return fail_field(column, " has a quote or a character that is not printable ASCII");
  }

  std::string_view text_;  // what is still to be read of the file
  std::string_view row_;   // and of the line at hand
  bool row_is_over_ = false;
  std::size_t line_ = 0;
  std::string reason_;
  std::vector<Column> columns_;
  bool has_offsets_ = false;
  std::size_t rows_max_ = 0;
  bool ids_are_numbers_ = true;
  NameNumbers ids_;
  NameNumbers groups_;
  NameNumbers spaces_;
  ProblemCsv csv_;
};

}  // namespace

Result<ProblemCsv> parse_problem_csv(std::string_view text, std::string_view name,
                                     std::string* error) {
  Reader reader(text);
  if (reader.read()) return std::move(reader.csv());
  if (error != nullptr)
    *error = std::string(name) + ":" + std::to_string(reader.line()) + ": " + reader.reason();
  return {Code::kMalformed, "not a planning problem"};
}

}  // namespace ashlar::inline v0::plan
