// Ashlar's graph allocator: graphs of tensors, and memory for them.
//
// Purpose: the one header that a user of graphs includes. Names stay in their room's namespace:
// ashlar::graph::GraphAllocator.
// Thread safety: stated for each function and class.
#pragma once

#include <ashlar/base/language.h>
#include <ashlar/base/version.h>
#include <ashlar/graph/graph.h>
#include <ashlar/graph/graph_allocator.h>
#include <ashlar/graph/memory_request.h>
#include <ashlar/graph/online_allocator.h>
#include <ashlar/graph/shape_rules.h>
#include <ashlar/graph/tensor_set.h>
