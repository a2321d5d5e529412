#include "src/tool/audited_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <functional>
#include <new>
#include <string_view>
#include <utility>

#include "spec/audit/audit_world.h"
#include "spec/cuda_face/cuda_face.h"

namespace ashlar::tool {
namespace {

/// How often a world that goes on is asked whether it should.
constexpr int kStopPollMilliseconds = 100;

/// A text that fits into memory shared by two processes.
template <std::size_t kSize>
class SharedText {
 public:
  void set(std::string_view text) {
    const std::size_t size = std::min(text.size(), kSize - 1);
    std::copy_n(text.data(), size, text_.begin());
    text_[size] = '\0';
  }
  std::string get() const { return text_.data(); }

 private:
  std::array<char, kSize> text_{};
};

/// What the child tells.
struct ChildReport {
  bool is_loaded = false;  ///< or is found to be no library
  bool is_over = false;
  std::uint64_t op_index = 0;  ///< of the op under way
  double seconds = 0;          ///< of the processor, when that began
  spec::AuditCounts counts;
  SharedText<16> clause;
  SharedText<2048> text;
  SharedText<1024> unloadable;
};

/// Memory that a child shares with this process. Throws std::bad_alloc.
class SharedReport {
 public:
  SharedReport()
      : at_(mmap(nullptr, sizeof(ChildReport), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0)) {
    if (at_ == MAP_FAILED) throw std::bad_alloc();
    report_ = new (at_) ChildReport;
  }
  ~SharedReport() { munmap(at_, sizeof(ChildReport)); }
  SharedReport(const SharedReport&) = delete;
  SharedReport& operator=(const SharedReport&) = delete;
  ChildReport* operator->() const { return report_; }

 private:
  void* const at_;
  ChildReport* report_ = nullptr;
};

/// Calls it, and says of what it throws which function did.
template <class Answer, class... Args>
std::function<Answer(Args...)> named(const std::string& name, Answer (*function)(Args...)) {
  if (function == nullptr) return nullptr;
  return [name, function](Args... args) -> Answer {
    try {
      return function(args...);
    } catch (const std::exception& thrown) {
      throw spec::LibraryThrew(name + " threw: " + thrown.what());
    } catch (...) {
      throw spec::LibraryThrew(name + " threw what is no std::exception");
    }
  };
}

/// Finds the functions of a library, and notes the first that it should have and has not.
class FunctionFinder {
 public:
  FunctionFinder(void* library, std::string path) : library_(library), path_(std::move(path)) {}

  template <class Answer, class... Args>
  void need(const std::string& name, const char* option, std::function<Answer(Args...)>& into) {
    look_up(name, into);
    if (into != nullptr || !missing_.empty()) return;
    missing_ = path_ + " has no function " + name + " (is it extern \"C\"? " + option +
               " gives another name)";
  }

  /// May be missing under its usual name, but not under one that was asked for.
  template <class Answer, class... Args>
  void take(const std::optional<std::string>& name, const char* usual, const char* option,
            std::function<Answer(Args...)>& into) {
    if (name) need(*name, option, into);
    else look_up(usual, into);
  }

  /// Empty: none.
  const std::string& missing() const { return missing_; }

 private:
  template <class Answer, class... Args>
  void look_up(const std::string& name, std::function<Answer(Args...)>& into) {
    into = named(name, reinterpret_cast<Answer (*)(Args...)>(dlsym(library_, name.c_str())));
  }

  void* library_;
  std::string path_;
  std::string missing_;
};

/// The reason why it cannot be used; empty if it can.
std::string load(const AuditedNames& names, spec::AuditedLibrary* out) {
  const bool is_path = names.library.find('/') != std::string::npos;
  void* const library =
      dlopen((is_path ? names.library : "./" + names.library).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  FunctionFinder finder(library, names.library);
  finder.need(names.allocate, "--alloc", out->allocate);
  finder.need(names.free, "--free", out->free);
  finder.take(names.record_use, kRecordUseName, "--record-stream", out->record_use);
  finder.take(names.empty_cache, kEmptyCacheName, "--empty-cache", out->empty_cache);
  return finder.missing();
}

void limit_child(const AuditLimits& limits) {
  const rlimit limit{limits.cpu_seconds, limits.cpu_seconds};
  setrlimit(RLIMIT_CPU, &limit);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGXCPU, SIGALRM})
    std::signal(signal, SIG_DFL);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);  // the parent's to judge
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(static_cast<unsigned>(3 * limits.cpu_seconds));  // for one that sleeps
  dup2(STDERR_FILENO, STDOUT_FILENO);                    // standard output is the report's alone
}

[[noreturn]] void run_child(const AuditedNames& names, const spec::OpFile& file,
                            const SharedReport& report) {
  spec::AuditedLibrary library;
  report->unloadable.set(load(names, &library));
  report->is_loaded = true;
  const auto note = [&](const spec::AuditFindings& found) {
    report->counts = static_cast<const spec::AuditCounts&>(found);
    report->op_index = found.op_index;
    report->seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  };
  if (report->unloadable.get().empty()) {
    spec::AuditWorld world(library, spec::cuda_face::attach);
    const spec::AuditFindings found = world.run(file, note);
    report->clause.set(found.clause);
    report->text.set(found.text);
    report->counts = static_cast<const spec::AuditCounts&>(found);
    report->op_index = found.op_index;
  }
  report->is_over = true;
  _exit(0);  // the library's destructors are not audited
}

/// A pipe whose other end is the child's alone, so that it closes when the child ends.
class ChildPipe {
 public:
  ChildPipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw std::bad_alloc();
  }
  ~ChildPipe() {
    for (const int end : ends_) close(end);
  }
  ChildPipe(const ChildPipe&) = delete;
  ChildPipe& operator=(const ChildPipe&) = delete;
  void drop_child_end() { close(std::exchange(ends_[1], -1)); }
  bool is_closed_within(int milliseconds) const {
    pollfd end{ends_[0], POLLIN, 0};
    return poll(&end, 1, milliseconds) > 0;
  }

 private:
  std::array<int, 2> ends_{};
};

/// The child's status; it is killed when `stop` is true.
int wait_for(pid_t child, const ChildPipe& pipe, const std::atomic<bool>* stop) {
  int status = 0;
  while (true) {
    const bool is_closed = pipe.is_closed_within(kStopPollMilliseconds);
    const bool is_stopped = stop != nullptr && *stop;
    if (is_stopped) kill(child, SIGKILL);
    if (waitpid(child, &status, is_closed || is_stopped ? 0 : WNOHANG) == child) return status;
  }
}

/// How the child ended that did not come to its end.
struct ChildEnd {
  explicit ChildEnd(int status) : signal(WIFSIGNALED(status) ? WTERMSIG(status) : 0) {}
  bool is_hanging() const { return signal == SIGXCPU || signal == SIGALRM || signal == SIGKILL; }

  int signal;  ///< 0: none
};

std::string end_while_loading(const std::string& library, const ChildEnd& end) {
  if (end.is_hanging()) return "loading " + library + " does not return";
  if (end.signal == 0) return library + " ended the process while it was loaded";
  return "the process died while it loaded " + library + ": " + strsignal(end.signal);
}

void note_end(const ChildEnd& end, spec::AuditFindings* findings) {
  ++findings->ops;
  findings->clause = end.is_hanging() ? kHangClause : spec::kCrashClause;
  findings->text = end.is_hanging()  ? "the call does not return"
                   : end.signal != 0 ? std::string("the process died: ") + strsignal(end.signal)
                                     : "the library ended the process";
}

}  // namespace

AuditedRun run_audited(const AuditedNames& names, const spec::OpFile& file,
                       const AuditLimits& limits) {
  const SharedReport report;
  ChildPipe pipe;
  const pid_t child = fork();
  if (child < 0) throw std::bad_alloc();
  if (child == 0) {
    limit_child(limits);
    run_child(names, file, report);
  }
  pipe.drop_child_end();
  const ChildEnd end(wait_for(child, pipe, limits.stop));
  AuditedRun run;
  run.unloadable = report->unloadable.get();
  run.seconds = report->seconds;
  run.is_stopped = limits.stop != nullptr && *limits.stop;
  static_cast<spec::AuditCounts&>(run.findings) = report->counts;
  run.findings.op_index = report->op_index;
  run.findings.clause = report->clause.get();
  run.findings.text = report->text.get();
  if (!report->is_loaded) run.unloadable = end_while_loading(names.library, end);
  else if (!report->is_over) note_end(end, &run.findings);
  return run;
}

}  // namespace ashlar::tool
