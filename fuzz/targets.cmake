# Every fuzz target, in alphabetical order.
ashlar_add_fuzzer(ops_text SOURCES ops_text.cc LIBRARIES ashlar_spec SEEDS seeds/ops_text)
