#include <string>

#include "bench/driver/capture_session.h"
#include "bench/driver/driver_facts.h"
#include "bench/driver/page_batch.h"

namespace ashlar::bench {
namespace {

const char* const kTopic = "Graphs";

/// Something that can be launched; destroyed with this.
class ReadyGraph {
 public:
  ReadyGraph(const DriverSession& session, CUgraph graph) : session_(session) {
    made_ = graph == nullptr ? CUDA_ERROR_INVALID_VALUE
                             : session_.cu.graph_instantiate(&exec_, graph, 0);
  }
  ~ReadyGraph() {
    if (exec_ != nullptr) session_.cu.graph_exec_destroy(exec_);
  }
  ReadyGraph(const ReadyGraph&) = delete;
  ReadyGraph& operator=(const ReadyGraph&) = delete;
  CUresult made() const { return made_; }
  /// Launches and waits.
  CUresult run() {
    if (exec_ == nullptr) return made_;
    const CUresult launched = session_.cu.graph_launch(exec_, session_.work);
    const CUresult done = session_.cu.stream_synchronize(session_.work);
    return launched == CUDA_SUCCESS ? done : launched;
  }

 private:
  const DriverSession& session_;
  CUgraphExec exec_ = nullptr;
  CUresult made_ = CUDA_SUCCESS;
};

/// A range with two pages that change places under it; each is also mapped where it stays.
struct ChangingRange {
  explicit ChangingRange(const DriverSession& on) : session(on), pages(on, 2, kPageSize) {
    pages.map_all();
    session.cu.mem_address_reserve(&at, kPageSize, 0, 0, 0);
  }
  ~ChangingRange() {
    unmap();
    session.cu.mem_address_free(at, kPageSize);
  }
  ChangingRange(const ChangingRange&) = delete;
  ChangingRange& operator=(const ChangingRange&) = delete;
  void map(std::size_t page) {
    is_mapped = session.cu.mem_map(at, kPageSize, 0, pages.handle(page), 0) == CUDA_SUCCESS;
    give_access(session, at, kPageSize);
  }
  void unmap() {
    if (is_mapped) session.cu.mem_unmap(at, kPageSize);
    is_mapped = false;
  }
  std::uint32_t word_of(std::size_t page) const { return read_word(session, pages.at(page)); }

  const DriverSession& session;
  PageBatch pages;
  CUdeviceptr at = 0;
  bool is_mapped = false;
};

void find_remaps(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  ChangingRange range(session);
  range.map(0);
  for (const std::size_t page : {0u, 1u}) store(session, session.work, range.pages.at(page), 0);
  CaptureSession capture(session, session.work, CU_STREAM_CAPTURE_MODE_GLOBAL);
  cu.memset_d32_async(range.at, 11, kPageSize / 4, session.work);
  store(session, session.work, range.at + 4, 12);
  capture.end();
  ReadyGraph graph(session, capture.graph());
  const std::uint32_t before = range.word_of(0);
  const CUresult first = graph.run();
  report->fact(kTopic, "56", "what is captured does not run until the graph is launched",
               before == 0 && range.word_of(0) == 11, names_of(session, {graph.made(), first}));
  store(session, session.work, range.pages.at(0), 5);
  cu.ctx_synchronize();
  range.unmap();
  range.map(1);
  const CUresult second = graph.run();
  const std::uint32_t old_page = range.word_of(0), new_page = range.word_of(1);
  const std::uint32_t by_kernel = read_word(session, range.pages.at(1) + 4);
  report->fact(kTopic, "",
               "a graph's memset and kernel, replayed over another page under their addresses, "
               "write that page",
               second == CUDA_SUCCESS && old_page == 5 && new_page == 11 && by_kernel == 12,
               names_of(session, {second}) + "; old page " + std::to_string(old_page) +
                   ", new page " + std::to_string(new_page) + " and " + std::to_string(by_kernel));
  range.unmap();
  range.map(0);
  const CUresult third = graph.run();
  report->fact(kTopic, "", "and over the first page again",
               third == CUDA_SUCCESS && range.word_of(0) == 11, names_of(session, {third}));
}

/// A graph of one node, captured for an address without a mapping.
void find_captures_of_nothing(const DriverSession& session, DriverReport* report, bool is_memset) {
  const CudaDriver& cu = session.cu;
  const std::string node = is_memset ? "memset" : "kernel";
  ChangingRange range(session);
  store(session, session.work, range.pages.at(0), 0);
  cu.ctx_synchronize();
  CaptureSession capture(session, session.work, CU_STREAM_CAPTURE_MODE_GLOBAL);
  const CUresult set = is_memset ? cu.memset_d32_async(range.at, 21, 1, session.work)
                                 : store(session, session.work, range.at, 21);
  const CUresult ended = capture.end();
  report->fact(kTopic, "", "a " + node + " can be captured for an address without a mapping",
               set == CUDA_SUCCESS && ended == CUDA_SUCCESS, names_of(session, {set, ended}));
  {
    ReadyGraph early(session, capture.graph());
    report->fact(kTopic, "",
                 "the graph of that " + node + " can be instantiated before a page is there",
                 early.made() == CUDA_SUCCESS, names_of(session, {early.made()}));
    if (early.made() == CUDA_SUCCESS) {
      range.map(0);
      const CUresult ran = early.run();
      report->fact(kTopic, "", "it runs once a page is there",
                   ran == CUDA_SUCCESS && range.word_of(0) == 21, names_of(session, {ran}));
      return;
    }
  }
  range.map(0);
  ReadyGraph late(session, capture.graph());
  const CUresult ran = late.run();
  report->fact(kTopic, "", "it can be instantiated and runs once a page is there",
               ran == CUDA_SUCCESS && range.word_of(0) == 21,
               names_of(session, {late.made(), ran}));
}

/// A graph of one conditional node whose body is captured by `capture_body`.
class ConditionalGraph {
 public:
  template <class CaptureBody>
  ConditionalGraph(const DriverSession& session, CUgraphConditionalNodeType type, unsigned initial,
                   CaptureBody capture_body)
      : session_(session) {
    const CudaDriver& cu = session.cu;
    answer_ = cu.graph_create(&graph_, 0);
    keep(cu.graph_conditional_handle_create(&handle_, graph_, session.context, initial,
                                            CU_GRAPH_COND_ASSIGN_DEFAULT));
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.handle = handle_;
    parameters.conditional.type = type;
    parameters.conditional.size = 1;
    parameters.conditional.ctx = session.context;
    CUgraphNode node = nullptr;
    if (answer_ == CUDA_SUCCESS)
      keep(cu.graph_add_node(&node, graph_, nullptr, nullptr, 0, &parameters));
    if (answer_ != CUDA_SUCCESS) return;
    keep(cu.stream_begin_capture_to_graph(session.work, parameters.conditional.phGraph_out[0],
                                          nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
    if (answer_ != CUDA_SUCCESS) return;
    keep(capture_body(handle_));
    CUgraph body = nullptr;
    keep(cu.stream_end_capture(session.work, &body));
  }
  ~ConditionalGraph() {
    if (graph_ != nullptr) session_.cu.graph_destroy(graph_);
  }
  ConditionalGraph(const ConditionalGraph&) = delete;
  ConditionalGraph& operator=(const ConditionalGraph&) = delete;
  CUgraph graph() const { return graph_; }
  CUresult answer() const { return answer_; }  ///< the first error

 private:
  void keep(CUresult result) {
    if (answer_ == CUDA_SUCCESS) answer_ = result;
  }

  const DriverSession& session_;
  CUgraph graph_ = nullptr;
  CUgraphConditionalHandle handle_ = 0;
  CUresult answer_ = CUDA_SUCCESS;
};

void find_conditional_facts(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  if (cu.graph_conditional_handle_create == nullptr || cu.graph_add_node == nullptr ||
      cu.stream_begin_capture_to_graph == nullptr) {
    report->fact(kTopic, "", "conditional nodes", FactVerdict::kNotRun, "the driver has none");
    return;
  }
  CUdeviceptr word = 0;
  cu.mem_alloc(&word, kPageSize);
  const auto set = [&](CUgraphConditionalHandle) {
    return cu.memset_d32_async(word, 31, 1, session.work);
  };
  for (const unsigned initial : {0u, 1u}) {
    cu.memset_d32_async(word, 30, 2, session.work);
    ConditionalGraph conditional(session, CU_GRAPH_COND_TYPE_IF, initial, set);
    ReadyGraph graph(session, conditional.graph());
    const CUresult ran = graph.run();
    report->fact(kTopic, "",
                 std::string("the body of an IF node ") + (initial ? "runs" : "does not run") +
                     " where its condition is " + std::to_string(initial),
                 ran == CUDA_SUCCESS && read_word(session, word) == 30 + initial,
                 names_of(session, {conditional.answer(), graph.made(), ran}));
  }
  if (session.count_down == nullptr) {
    report->fact(kTopic, "", "a WHILE node", FactVerdict::kNotRun,
                 "the driver cannot load the kernel that sets its condition");
    cu.mem_free(word);
    return;
  }
  constexpr unsigned kTurns = 10;
  ConditionalGraph conditional(session, CU_GRAPH_COND_TYPE_WHILE, 1,
                               [&](CUgraphConditionalHandle handle) {
                                 void* parameters[] = {&word, &handle};
                                 return cu.launch_kernel(session.count_down, 1, 1, 1, 1, 1, 1, 0,
                                                         session.work, parameters, nullptr);
                               });
  ReadyGraph graph(session, conditional.graph());
  std::string answers = names_of(session, {conditional.answer(), graph.made()});
  bool is_right = true;
  for (unsigned replay = 0; replay < 3; ++replay) {
    cu.memset_d32_async(word, kTurns, 1, session.work);
    const CUresult ran = graph.run();
    is_right = is_right && ran == CUDA_SUCCESS && read_word(session, word) == 0;
    answers += ", " + names_of(session, {ran}) + " " + std::to_string(read_word(session, word));
  }
  report->fact(kTopic, "", "the body of a WHILE node runs until its condition is 0, at each replay",
               is_right, answers);
  cu.mem_free(word);
}

}  // namespace

void find_graph_facts(const DriverSession& session, DriverReport* report) {
  find_remaps(session, report);
  find_captures_of_nothing(session, report, true);
  find_captures_of_nothing(session, report, false);
  find_conditional_facts(session, report);
}

}  // namespace ashlar::bench
