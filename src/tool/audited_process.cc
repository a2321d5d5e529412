#include "src/tool/audited_process.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <string_view>
#include <utility>

#include "spec/audit/audit_world.h"
#include "spec/cuda_face/cuda_face.h"

namespace ashlar::tool {
namespace {

constexpr rlim_t kSecondsMax = 20;

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

[[noreturn]] void run_child(const AuditedNames& names, const spec::OpFile& file,
                            const SharedReport& report) {
  const rlimit limit{kSecondsMax, kSecondsMax};
  setrlimit(RLIMIT_CPU, &limit);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal :
       {SIGINT, SIGTERM, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGXCPU, SIGALRM})
    std::signal(signal, SIG_DFL);
  alarm(3 * kSecondsMax);  // for one that sleeps
  dup2(STDERR_FILENO, STDOUT_FILENO);  // standard output is the report's alone
  spec::AuditedLibrary library;
  report->unloadable.set(load(names, &library));
  report->is_loaded = true;
  if (report->unloadable.get().empty()) {
    spec::AuditWorld world(library, spec::cuda_face::attach);
    const spec::AuditFindings found =
        world.run(file, [&](std::uint64_t i) { report->op_index = i; });
    report->clause.set(found.clause);
    report->text.set(found.text);
    report->counts = static_cast<const spec::AuditCounts&>(found);
    report->op_index = found.op_index;
  }
  report->is_over = true;
  _exit(0);  // the library's destructors are not audited
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
  findings->ops = findings->op_index + 1;
  findings->clause = end.is_hanging() ? "C30" : "crash";
  findings->text = end.is_hanging()  ? "the call does not return"
                   : end.signal != 0 ? std::string("the process died: ") + strsignal(end.signal)
                                     : "the library ended the process";
}

}  // namespace

AuditedRun run_audited(const AuditedNames& names, const spec::OpFile& file) {
  const SharedReport report;
  const pid_t child = fork();
  if (child < 0) throw std::bad_alloc();
  if (child == 0) run_child(names, file, report);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  AuditedRun run;
  run.unloadable = report->unloadable.get();
  static_cast<spec::AuditCounts&>(run.findings) = report->counts;
  run.findings.op_index = report->op_index;
  run.findings.clause = report->clause.get();
  run.findings.text = report->text.get();
  if (!report->is_loaded) run.unloadable = end_while_loading(names.library, ChildEnd(status));
  else if (!report->is_over) note_end(ChildEnd(status), &run.findings);
  return run;
}

}  // namespace ashlar::tool
