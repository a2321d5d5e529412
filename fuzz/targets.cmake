# Every fuzz target, in alphabetical order.
ashlar_add_fuzzer(block_pool SOURCES block_pool_fuzz.cc LIBRARIES ashlar_adapters SUBJECT pool
  SEEDS_OPS ../props/regressions)
ashlar_add_fuzzer(caching_allocator SOURCES caching_allocator_fuzz.cc LIBRARIES cache_sequences SUBJECT cache
  SEEDS_OPS seeds/caching_allocator ../props/regressions)
set_tests_properties(fuzz_caching_allocator PROPERTIES ENVIRONMENT ASHLAR_FUZZ_IN_FULL=1)
ashlar_add_fuzzer(config SOURCES config_fuzz.cc LIBRARIES ashlar_spec SEEDS seeds/config)
ashlar_add_fuzzer(graph_file SOURCES graph_file_fuzz.cc LIBRARIES ashlar_trace ashlar_spec SEEDS seeds/graph_file)
ashlar_add_fuzzer(graph_memory SOURCES graph_memory_fuzz.cc LIBRARIES graph_values SEEDS seeds/graph_memory)
ashlar_add_fuzzer(graph_schedule SOURCES graph_schedule_fuzz.cc LIBRARIES schedule_runs SEEDS seeds/graph_schedule)
ashlar_add_fuzzer(ops_text SOURCES ops_text_fuzz.cc LIBRARIES ashlar_spec SEEDS seeds/ops_text)
ashlar_add_fuzzer(pinned_allocator SOURCES pinned_allocator_fuzz.cc LIBRARIES pinned_world
  SEEDS seeds/pinned_allocator)
ashlar_add_fuzzer(plan_file SOURCES plan_file_fuzz.cc LIBRARIES ashlar_spec SEEDS seeds/plan_file)
ashlar_add_fuzzer(plan_problem SOURCES plan_problem_fuzz.cc LIBRARIES ashlar_spec SEEDS seeds/plan_problem)
ashlar_add_fuzzer(plan_solver SOURCES plan_solver_fuzz.cc LIBRARIES ashlar_spec SEEDS seeds/plan_solver)
ashlar_add_fuzzer(replay SOURCES replay_fuzz.cc LIBRARIES replay_cases SEEDS seeds/replay)
ashlar_add_fuzzer(share_header SOURCES share_header_fuzz.cc LIBRARIES ashlar_spec SEEDS seeds/share_header)
ashlar_add_fuzzer(trace_import SOURCES trace_import_fuzz.cc LIBRARIES ashlar_trace SEEDS seeds/trace_import)
ashlar_add_fuzzer(trace_reader SOURCES trace_reader_fuzz.cc LIBRARIES ashlar_trace SEEDS seeds/trace_reader)
