#include <ashlar/cache/page_stock.h>

#include <new>
#include <utility>

namespace ashlar::inline v0::cache {

PageStock::~PageStock() {
  for (Records* records = newest_made_; records != nullptr;)
    delete std::exchange(records, records->made_before);
}

PhysicalPage* PageStock::take_spare() noexcept {
  const MutexGuard guard(lock_);
  PhysicalPage* const spare = spare_;
  if (spare != nullptr) spare_ = std::exchange(spare->newer, nullptr);
  return spare;
}

PhysicalPage* PageStock::new_record() noexcept {
  if (PhysicalPage* const spare = take_spare()) return spare;
  Records* const made = new (std::nothrow) Records;
  if (made == nullptr) return nullptr;
  const MutexGuard guard(lock_);
  made->made_before = std::exchange(newest_made_, made);
  for (std::size_t i = 1; i < made->pages.size(); ++i)
    made->pages[i].newer = std::exchange(spare_, &made->pages[i]);
  return &made->pages[0];
}

void PageStock::recycle(PhysicalPage* page) noexcept {
  const MutexGuard guard(lock_);
  page->handle = PageHandle{};
  page->newer = std::exchange(spare_, page);
}

void PageStock::put(PhysicalPage* page) noexcept {
  const MutexGuard guard(lock_);
  page->home = nullptr;
  page->is_in_stock = true;
  page->newer = nullptr;
  page->older = std::exchange(newest_, page);
  (page->older != nullptr ? page->older->newer : oldest_) = page;
  ++count_;
}

void PageStock::put_last(PhysicalPage* page) noexcept {
  const MutexGuard guard(lock_);
  page->home = nullptr;
  page->is_in_stock = true;
  page->older = nullptr;
  page->newer = std::exchange(oldest_, page);
  (page->newer != nullptr ? page->newer->older : newest_) = page;
  ++count_;
}

void PageStock::remove(PhysicalPage& page) noexcept {
  (page.newer != nullptr ? page.newer->older : newest_) = page.older;
  (page.older != nullptr ? page.older->newer : oldest_) = page.newer;
  page.newer = page.older = nullptr;
  page.is_in_stock = false;
  --count_;
}

PhysicalPage* PageStock::take() noexcept {
  const MutexGuard guard(lock_);
  PhysicalPage* const page = newest_;
  if (page != nullptr) remove(*page);
  return page;
}

std::uint64_t PageStock::count() const noexcept {
  const MutexGuard guard(lock_);
  return count_;
}

bool PageStock::claim(PageSlot& slot, Status* failure) noexcept {
  const MutexGuard guard(lock_);
  if (slot.page == nullptr) return false;
  if (slot.page->is_in_stock) {
    remove(*slot.page);
    return true;
  }
  *failure = unmap_locked(slot);
  return false;
}

void PageStock::note_mapped(PageSlot& slot) noexcept {
  const MutexGuard guard(lock_);
  slot.is_mapped = true;
  slot.next = std::exchange(slot.page->mappings, &slot);
  ++slot.page->mapping_count;
}

void PageStock::settle(PageSlot& slot) noexcept {
  const MutexGuard guard(lock_);
  slot.page->home = &slot;
}

void PageStock::unlink(PageSlot& slot) noexcept {
  PhysicalPage& page = *slot.page;
  PageSlot** at = &page.mappings;
  while (*at != &slot) at = &(*at)->next;
  *at = slot.next;
  --page.mapping_count;
  slot.page = nullptr;
  slot.next = nullptr;
  slot.is_mapped = slot.has_access = false;
}

Status PageStock::unmap_locked(PageSlot& slot) noexcept {
  if (!slot.is_mapped) return Status::ok();
  const Status unmapped = driver_.page_unmap(Address{slot.at}, page_);
  if (unmapped.is_ok()) unlink(slot);
  return unmapped;
}

Status PageStock::unmap(PhysicalPage& page) noexcept {
  for (;;) {
    const MutexGuard guard(lock_);
    if (page.mappings == nullptr) return Status::ok();
    if (const Status unmapped = unmap_locked(*page.mappings); !unmapped.is_ok()) return unmapped;
  }
}

Status PageStock::unmap(PageSlot& slot) noexcept {
  const MutexGuard guard(lock_);
  return unmap_locked(slot);
}

void PageStock::limit_mappings(PageSlot& slot, std::uint32_t most) noexcept {
  const MutexGuard guard(lock_);
  if (slot.page->mapping_count > most) static_cast<void>(unmap_locked(slot));
}

void PageStock::note_unmapped(PageSlot& slot) noexcept {
  const MutexGuard guard(lock_);
  unlink(slot);
}

}  // namespace ashlar::inline v0::cache
