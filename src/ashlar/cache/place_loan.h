// A request at the place where its heap's log expects it, though pages of that place are at home elsewhere.
//
// Such a loan is between places of one heap: nothing is owed, and no stream is a borrower (stream_reuse.h has those).
// Purpose: where memory is short, one page serves several places in the course of a step. In the next
// step it is wanted at each of them again. It is still mapped there (page_table.h), so it comes back
// without a device call, and a step that repeats makes none (C20).
// Thread safety: under the heap's lock and without others' help: pages come from free blocks of the same
// pool, and the stream's order protects them as it does a block that is handed out again (C6). So their
// last use need not be complete, which the room for other pages heeds (page_room.h).
//
// What can fail: a page may not be free to come. Then none comes, and the request is served as if no place
// were remembered: from a free block that fits, without a device call (C17).
// C8: in a memory pool in use nothing moves. C21: nor does a page that is pinned at its home. DEV-24: an allocator
// that has observers of mappings makes no loans, because they would have to be told under the heap's lock
// (miss_ladder.cc). C31: kLoanPagesMax pages, each with kHomeLooksMax looks.
#pragma once

#include <ashlar/cache/page_stock.h>
#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

/// Serves the request at the expected place. REQUIRES: the heap has a log of places for the request's pool. The null address, and all is as before, if it has none or that
/// cannot be free without a device call. If the host has no memory for the allocation's own record, the null
/// address, noted, and the pages have come.
Address borrow_place(StreamHeap& heap, const Request& request, PageStock& stock, const PageMap& map,
                     Bytes page) noexcept ASHLAR_EXCLUDES(heap.lock);

}  // namespace ashlar::inline v0::cache
