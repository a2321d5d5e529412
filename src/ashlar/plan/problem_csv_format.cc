#include <charconv>
#include <concepts>

#include <ashlar/plan/csv_columns.h>
#include <ashlar/plan/name_numbers.h>
#include <ashlar/plan/problem_csv.h>

namespace ashlar::inline v0::plan {
namespace {

template <std::integral T>
void append(std::string* out, T number) {
  char digits[20];
  out->append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void append_offset(std::string* out, Bytes offset) {
  if (offset != kNowhere) append(out, offset.count());
}

using InUse = std::array<bool, kColumns>;

InUse columns_in_use(const Problem& problem, bool has_offsets) {
  InUse is_used{};
  const auto used = [&is_used](Column column) -> bool& {
    return is_used[static_cast<std::size_t>(column)];
  };
  std::fill_n(is_used.begin(), kColumnsRequired, true);
  for (const Buffer& buffer : problem.buffers) {
    used(Column::kAlignment) |= buffer.alignment != Bytes{1};
    used(Column::kGaps) |= buffer.gaps_begin != buffer.gaps_end;
    used(Column::kHint) |= buffer.hint != kNowhere;
    used(Column::kPinned) |= buffer.pinned != kNowhere;
    used(Column::kGroup) |= buffer.group != kNoGroup;
  }
  used(Column::kSpace) = problem.spaces.size() > 1 || !problem.spaces[0].name.empty();
  used(Column::kOffset) = has_offsets;
  return is_used;
}

// Names as they are written: an empty one becomes its number.
struct Names {
  std::vector<std::string> spaces;
  std::vector<std::string> groups;
};

Names names_of(const Problem& problem) {
  Names names;
  const auto add = [](const std::string& name, std::vector<std::string>* to) {
    to->push_back(name.empty() ? std::to_string(to->size()) : name);
  };
  for (const Space& space : problem.spaces) add(space.name, &names.spaces);
  for (const std::string& group : problem.groups) add(group, &names.groups);
  return names;
}

bool can_be_read_back(const std::vector<std::string>& names) {
  NameNumbers seen;
  return std::all_of(names.begin(), names.end(), [&seen](const std::string& name) {
    return is_csv_name(name) && seen.number_of(name).is_new;
  });
}

class Writer {
 public:
  Writer(const Problem& problem, const std::vector<Bytes>& offsets, const Names& names)
      : problem_(problem),
        offsets_(offsets),
        names_(names),
        is_used_(columns_in_use(problem, !offsets.empty())) {}

  std::string write() {
    out_.reserve(64 + problem_.buffers.size() * 48);
    write_line([this](Column column) { out_ += name_of(column); });
    for (std::uint32_t b = 0; b < problem_.buffers.size(); ++b) {
      write_line([this, b](Column column) { write_field(b, column); });
    }
    return std::move(out_);
  }

 private:
  template <class WriteField>
  void write_line(WriteField write_one) {
    for (std::size_t c = 0; c < kColumns; ++c) {
      if (!is_used_[c]) continue;
      if (c > 0) out_ += ',';  // the first column is always used
      write_one(static_cast<Column>(c));
    }
    out_ += '\n';
  }

  void write_field(std::uint32_t b, Column column) {
    const Buffer& buffer = problem_.buffers[b];
    switch (column) {
      case Column::kId:
        if (problem_.ids.empty()) return append(&out_, b);
        out_ += problem_.ids[b];
        return;
      case Column::kLower: return append(&out_, buffer.life.lower);
      case Column::kUpper: return append(&out_, buffer.life.upper);
      case Column::kSize: return append(&out_, buffer.size.count());
      case Column::kAlignment: return append(&out_, buffer.alignment.count());
      case Column::kGaps: return write_gaps(buffer);
      case Column::kHint: return append_offset(&out_, buffer.hint);
      case Column::kPinned: return append_offset(&out_, buffer.pinned);
      case Column::kGroup:
        if (buffer.group != kNoGroup) out_ += names_.groups[buffer.group];
        return;
      case Column::kSpace: out_ += names_.spaces[buffer.space]; return;
      case Column::kOffset: return append_offset(&out_, offsets_[b]);
    }
  }

  void write_gaps(const Buffer& buffer) {
    for (std::uint32_t g = buffer.gaps_begin; g < buffer.gaps_end; ++g) {
      if (g != buffer.gaps_begin) out_ += ' ';
      append(&out_, problem_.gaps[g].lower);
      out_ += '-';
      append(&out_, problem_.gaps[g].upper);
    }
  }

  const Problem& problem_;
  const std::vector<Bytes>& offsets_;
  const Names& names_;
  const InUse is_used_;
  std::string out_;
};

}  // namespace

Result<std::string> format_problem_csv(const Problem& problem, const std::vector<Bytes>& offsets) {
  ASHLAR_REQUIRE(offsets.empty() || offsets.size() == problem.buffers.size(),
                 Code::kInvalidArgument, "the number of offsets is not that of the buffers");
  ASHLAR_REQUIRE(std::all_of(offsets.begin(), offsets.end(),
                             [](Bytes o) { return o <= kPlanBytesMax || o == kNowhere; }),
                 Code::kSizeOverflow, "an offset is over 2^62");
  const Names names = names_of(problem);
  ASHLAR_REQUIRE(can_be_read_back(problem.ids), Code::kInvalidArgument,
                 "an id occurs twice or cannot stand in CSV");
  ASHLAR_REQUIRE(can_be_read_back(names.groups), Code::kInvalidArgument,
                 "a group's name occurs twice or cannot stand in CSV");
  ASHLAR_REQUIRE(can_be_read_back(names.spaces), Code::kInvalidArgument,
                 "a space's name occurs twice or cannot stand in CSV");
  return Writer(problem, offsets, names).write();
}

}  // namespace ashlar::inline v0::plan
