#include "bench/driver/driver_report.h"

#include <utility>

namespace ashlar::bench {
namespace {

const char* const kCellNames[] = {"global, own",         "global, other", "thread-local, own",
                                  "thread-local, other", "relaxed, own",  "relaxed, other"};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 100 ? "%.2f" : "%.0f", value);
  return text;
}

std::string markdown_times(const CallTimes& times) {
  if (!times.error.empty()) return times.error + " | | | ";
  if (times.calls == 0) return " | | | ";
  return number(times.median_us) + " | " + number(times.p90_us) + " | " + number(times.mean_us) +
         " | " + std::to_string(times.calls);
}

std::string waits_text(const CostRow& row) {
  if (row.probes == 0) return "";
  if (row.waited == 0) return "no";
  if (row.waited == row.probes) return "yes";
  return std::to_string(row.waited) + " of " + std::to_string(row.probes);
}

void print_cost_table(const DriverReport& report, std::FILE* out) {
  std::fprintf(
      out,
      "\n## Costs\n\nMicroseconds for one call, by the host's clock, which costs the first "
      "row. Busy: beside a running kernel that uses none of the memory. Waits: a call "
      "returned only when that kernel had ended; then there are no busy times.\n\n"
      "| call | of | idle median | p90 | mean | calls | busy median | p90 | mean | calls | "
      "waits |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n");
  for (const CostRow& row : report.costs) {
    std::fprintf(out, "| %s | %s | %s | %s | %s |\n", row.call.c_str(), row.of.c_str(),
                 markdown_times(row.idle).c_str(), markdown_times(row.busy).c_str(),
                 waits_text(row).c_str());
  }
}

void print_fact_tables(const DriverReport& report, std::FILE* out) {
  std::string topic;
  std::fprintf(
      out,
      "\n## Facts\n\nEach statement is as the simulated GPU has it; a number is that of the "
      "case in props/rules. `does not`: the driver differs. `measured`: no claim is made.\n");
  for (const DriverFact& fact : report.facts) {
    if (fact.topic != topic) {
      topic = fact.topic;
      std::fprintf(out, "\n### %s\n\n| rule | statement | verdict | answers |\n|---|---|---|---|\n",
                   topic.c_str());
    }
    std::fprintf(out, "| %s | %s | %s | %s |\n", fact.rule.c_str(), fact.statement.c_str(),
                 verdict_name(fact.verdict), fact.answers.c_str());
  }
}

std::string joined(const std::vector<std::string>& cells, const char* between) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) text += between;
    text += cells[i];
  }
  return text;
}

void print_capture_table(const DriverReport& report, std::FILE* out) {
  std::fprintf(
      out,
      "\n## Calls while a stream captures\n\nColumns: the mode that the capture was begun "
      "with, and whether its own thread or another makes the call. A letter for each mode of "
      "the calling thread, global, thread-local and relaxed: `.` permitted, `x` refused and "
      "the capture invalidated, `r` refused and the capture unharmed, `i` permitted and the "
      "capture invalidated.\n\n| call |");
  for (const char* name : kCellNames) std::fprintf(out, " %s |", name);
  std::fprintf(out, " errors | simulated GPU |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const CaptureRow& row : report.captures) {
    std::fprintf(
        out, "| %s | `%s` | %s | %s |\n", row.call.c_str(), joined(row.cells, "` | `").c_str(),
        row.errors.c_str(),
        row.cells == row.simulated ? "the same" : ("`" + joined(row.simulated, " ") + "`").c_str());
  }
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string json_times(const CallTimes& times) {
  char text[192];
  std::snprintf(text, sizeof text,
                "{\"calls\":%zu,\"median_us\":%.3f,\"p90_us\":%.3f,\"mean_us\":%.3f,"
                "\"max_us\":%.3f,\"error\":",
                times.calls, times.median_us, times.p90_us, times.mean_us, times.max_us);
  return text + quoted(times.error) + "}";
}

std::string json_list(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) all.push_back(quoted(text));
  return "[" + joined(all, ",") + "]";
}

}  // namespace

const char* verdict_name(FactVerdict verdict) {
  switch (verdict) {
    case FactVerdict::kHolds: return "holds";
    case FactVerdict::kDoesNot: return "does not";
    case FactVerdict::kMeasured: return "measured";
    case FactVerdict::kNotRun: return "not run";
  }
  return "";
}

void DriverReport::fact(std::string topic, std::string rule, std::string statement,
                        FactVerdict verdict, std::string answers) {
  std::fprintf(stderr, "%-8s %s: %s [%s]\n", verdict_name(verdict), topic.c_str(),
               statement.c_str(), answers.c_str());
  facts.push_back(
      {std::move(topic), std::move(rule), std::move(statement), verdict, std::move(answers)});
}

void print_markdown(const DriverReport& report, std::FILE* out) {
  std::fprintf(out, "Command: `%s`. Card: %s. Driver: %s; its interface is CUDA %d.%d.\n",
               report.command.c_str(), report.card.c_str(), report.driver.c_str(),
               report.version / 1000, report.version % 1000 / 10);
  if (!report.costs.empty()) print_cost_table(report, out);
  if (!report.facts.empty()) print_fact_tables(report, out);
  if (!report.captures.empty()) print_capture_table(report, out);
}

void print_json(const DriverReport& report, std::FILE* out) {
  std::vector<std::string> costs, facts, captures;
  for (const CostRow& row : report.costs) {
    costs.push_back("{\"call\":" + quoted(row.call) + ",\"of\":" + quoted(row.of) +
                    ",\"idle\":" + json_times(row.idle) + ",\"busy\":" + json_times(row.busy) +
                    ",\"waited\":" + std::to_string(row.waited) +
                    ",\"probes\":" + std::to_string(row.probes) + "}");
  }
  for (const DriverFact& fact : report.facts) {
    facts.push_back("{\"topic\":" + quoted(fact.topic) + ",\"rule\":" + quoted(fact.rule) +
                    ",\"statement\":" + quoted(fact.statement) +
                    ",\"verdict\":" + quoted(verdict_name(fact.verdict)) +
                    ",\"answers\":" + quoted(fact.answers) + "}");
  }
  for (const CaptureRow& row : report.captures) {
    captures.push_back("{\"call\":" + quoted(row.call) + ",\"cells\":" + json_list(row.cells) +
                       ",\"simulated\":" + json_list(row.simulated) +
                       ",\"errors\":" + quoted(row.errors) + "}");
  }
  std::fprintf(out,
               "{\"card\":%s,\"driver\":%s,\"interface\":%d,\"command\":%s,\n\"costs\":[%s],\n"
               "\"facts\":[%s],\n\"captures\":[%s]}\n",
               quoted(report.card).c_str(), quoted(report.driver).c_str(), report.version,
               quoted(report.command).c_str(), joined(costs, ",\n").c_str(),
               joined(facts, ",\n").c_str(), joined(captures, ",\n").c_str());
}

}  // namespace ashlar::bench
