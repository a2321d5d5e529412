#include <ashlar/cache/page_map.h>

#include <new>

#include <ashlar/cache/host_refusals.h>

namespace ashlar::inline v0::cache {

namespace {
template <class Node>
void destroy_all(Node* node) noexcept {
  while (node != nullptr) {
    Node* before = node->made_before;
    delete node;
    node = before;
  }
}
}  // namespace

PageMap::~PageMap() {
  destroy_all(pairs_);
  destroy_all(bases_);
  destroy_all(words_);
  destroy_all(leaves_);
  destroy_all(inners_of_leaves_);
  destroy_all(inners_);
}

PageMap::Leaf* PageMap::leaf_of(std::uint64_t page) const noexcept {
  const Inner* inner = root_[index(page, 2)].load(std::memory_order_acquire);
  if (inner == nullptr) return nullptr;
  const InnerOfLeaves* last = inner->children[index(page, 1)].load(std::memory_order_acquire);
  return last == nullptr ? nullptr : last->children[index(page, 0)].load(std::memory_order_acquire);
}

PageMap::Found PageMap::find_by_descent(Address a) const noexcept {
  const Leaf* leaf = leaf_of(page_of(a));
  return leaf == nullptr ? Found{} : found(*leaf, a);
}

/// The child in that slot, which is made if there is none; nullptr if the host has no memory.
template <class Child, class... Arguments>
Child* PageMap::child_of(std::atomic<Child*>& slot, Child*& last_made,
                         Arguments... arguments) noexcept {
  Child* child = slot.load(std::memory_order_relaxed);
  if (child != nullptr) return child;
  child = new (std::nothrow) Child(arguments...);
  if (child == nullptr) return nullptr;
  child->made_before = last_made;
  last_made = child;
  slot.store(child, std::memory_order_release);
  return child;
}

/// The owner's number; if it has none yet, it gets one while one is left; else kWord. Cost:
/// O(numbers given).
PageMap::PageEntry PageMap::entry_of(Owner owner) noexcept {
  if (owner.is_nobody()) return kNobody;
  // From the newest: a growing allocator asks for that one.
  for (PageEntry entry = numbers_given_; entry != kNobody; --entry) {
    if (numbered_[entry].load(std::memory_order_relaxed) == owner.word()) return entry;
  }
  if (numbers_given_ + 1 == kWord) return kWord;
  numbers_given_ += 1;
  numbered_[numbers_given_].store(owner.word(), std::memory_order_relaxed);
  return numbers_given_;
}

/// The page's word, or nullptr if it has none.
PageMap::Word* PageMap::word_of(const Leaf& leaf, std::uint64_t page) noexcept {
  Words* words = leaf.words[index_in_leaf(page) / kWordsPages].load(std::memory_order_acquire);
  return words == nullptr ? nullptr : &words->of[page % kWordsPages];
}

PageMap::Word* PageMap::make_word(Leaf& leaf, std::uint64_t page) noexcept {
  Words* words = child_of(leaf.words[index_in_leaf(page) / kWordsPages], words_);
  return words == nullptr ? nullptr : &words->of[page % kWordsPages];
}

PageMap::Found PageMap::found_in_words(const Leaf& leaf, Address a) const noexcept {
  const std::uintptr_t word = word_of(leaf, page_of(a))->load(std::memory_order_acquire);
  if (is_by_base_) {
    const Bases& bases = *reinterpret_cast<const Bases*>(word);
    return {Owner::from_word(bases.of[index_of_base(a)].load(std::memory_order_acquire)), Owner{}};
  }
  const Pair* pair = pair_of(word);
  if (pair == nullptr) return {Owner::from_word(word), Owner{}};
  return {Owner::from_word(pair->first.load(std::memory_order_acquire)),
          Owner::from_word(pair->second.load(std::memory_order_acquire))};
}

/// Gives the page room for a second owner. False when the host has no memory.
bool PageMap::make_pair(Leaf& leaf, std::uint64_t page) noexcept {
  Word* const word = make_word(leaf, page);
  if (word == nullptr) return false;
  if (pair_of(word->load(std::memory_order_relaxed)) != nullptr) return true;
  Pair* pair = new (std::nothrow) Pair;
  if (pair == nullptr) return false;
  const Address first_byte{page << kPageBits};
  pair->first.store(found(leaf, first_byte).first.word(), std::memory_order_relaxed);
  pair->made_before = pairs_;
  pairs_ = pair;
  word->store(reinterpret_cast<std::uintptr_t>(pair) | kIsPair, std::memory_order_release);
  leaf.entries[index_in_leaf(page)].store(kWord, std::memory_order_release);
  return true;
}

/// Gives the page a table of bases. False when the host has no memory.
bool PageMap::make_bases(Leaf& leaf, std::uint64_t page) noexcept {
  Word* const word = make_word(leaf, page);
  if (word == nullptr) return false;
  if (word->load(std::memory_order_relaxed) != 0) return true;
  Bases* const bases = new (std::nothrow) Bases;
  if (bases == nullptr) return false;
  bases->made_before = bases_;
  bases_ = bases;
  word->store(reinterpret_cast<std::uintptr_t>(bases), std::memory_order_release);
  leaf.entries[index_in_leaf(page)].store(kWord, std::memory_order_release);
  return true;
}

Status PageMap::reserve(Address base, Bytes size, Owner owner) noexcept {
  const std::uint64_t last = base.value() + (size.count() - 1);
  if (last < base.value() || (last >> kAddressBits) != 0) return kAddressTooHigh;
  const MutexGuard lock(mutex_);
  const std::uint64_t end = (is_by_base_ ? base.value() : last) >> kPageBits;
  return make_room(base, end, owner) ? Status::ok() : kShortOfHostMemory;
}

bool PageMap::make_room(Address base, std::uint64_t end, Owner owner) noexcept {
  const bool has_number = is_by_base_ || entry_of(owner) != kWord;
  // Visits every leaf once; if the owner needs words, every group of 64 pages whose words are
  // allocated together.
  const std::uint64_t step = has_number ? kLeafPages : kWordsPages;
  for (std::uint64_t page = base.value() >> kPageBits; page <= end;) {
    Inner* inner = child_of(root_[index(page, 2)], inners_);
    if (inner == nullptr) return false;
    InnerOfLeaves* last_inner = child_of(inner->children[index(page, 1)], inners_of_leaves_);
    if (last_inner == nullptr) return false;
    Leaf* leaf = child_of(last_inner->children[index(page, 0)], leaves_, page >> kLeafBits);
    if (leaf == nullptr) return false;
    if (is_by_base_ && !make_bases(*leaf, page)) return false;
    if (!is_by_base_ && begins_inside(base, page) && !make_pair(*leaf, page)) return false;
    if (!has_number && make_word(*leaf, page) == nullptr) return false;
    page += step - page % step;
  }
  return true;
}

void PageMap::set_base(Address base, Owner owner) noexcept {
  const std::uint64_t page = page_of(base);
  Leaf* const leaf = leaf_of(page);
  ASHLAR_ASSERT(leaf != nullptr, "page map: range was not reserved");
  Word* const word = word_of(*leaf, page);
  ASHLAR_ASSERT(word != nullptr && word->load(std::memory_order_relaxed) != 0,
                "page map(5): no table was made for a page's bases");
  Bases& bases = *reinterpret_cast<Bases*>(word->load(std::memory_order_relaxed));
  bases.of[index_of_base(base)].store(owner.word(), std::memory_order_release);
  remember(*leaf);
}

void PageMap::remember(const Leaf& leaf) noexcept {
  // Every free reads the slot, so it is written only if it changes.
  std::atomic<const Leaf*>& slot = cached_leaf(leaf.number);
  if (slot.load(std::memory_order_relaxed) != &leaf) slot.store(&leaf, std::memory_order_release);
}

void PageMap::set(const DeviceSegment& segment, Owner owner) noexcept {
  const std::uint64_t last = segment.base.value() + (segment.size.count() - 1);
  const MutexGuard lock(mutex_);
  if (is_by_base_) return set_base(segment.base, owner);
  const PageEntry entry = entry_of(owner);
  for (std::uint64_t page = segment.base.value() >> kPageBits; page <= last >> kPageBits; ++page) {
    Leaf* leaf = leaf_of(page);
    ASHLAR_ASSERT(leaf != nullptr, "page map: range was not reserved");
    Word* const word = word_of(*leaf, page);
    Pair* const pair = word == nullptr ? nullptr : pair_of(word->load(std::memory_order_relaxed));
    const bool is_second = begins_inside(segment.base, page);
    ASHLAR_ASSERT(pair != nullptr || !is_second,
                  "page map(1): no room was made for a second owner");
    ASHLAR_ASSERT(word != nullptr || entry != kWord,
                  "page map(1): no room was made for an owner without a number");
    if (pair != nullptr) {
      (is_second ? pair->second : pair->first).store(owner.word(), std::memory_order_release);
    } else {
      if (entry == kWord) word->store(owner.word(), std::memory_order_release);
      leaf->entries[index_in_leaf(page)].store(entry, std::memory_order_release);
    }
    remember(*leaf);
  }
}

std::uint64_t PageMap::owner_count() const noexcept {
  const MutexGuard lock(mutex_);
  std::uint64_t count = 0;
  for (const Bases* bases = bases_; bases != nullptr; bases = bases->made_before) {
    for (const Word& word : bases->of) count += word.load(std::memory_order_relaxed) != 0;
  }
  if (is_by_base_) return count;
  for (const Leaf* leaf = leaves_; leaf != nullptr; leaf = leaf->made_before) {
    for (std::uint64_t page = 0; page < kLeafPages; ++page) {
      if (leaf->entries[page].load(std::memory_order_relaxed) == kNobody) continue;
      const Address first_byte{(leaf->number << kLeafBits | page) << kPageBits};
      const Found owners = found(*leaf, first_byte);
      count += !owners.first.is_nobody();
      count += !owners.second.is_nobody();
    }
  }
  return count;
}

void PageMap::insert(const DeviceSegment& segment) noexcept { set(segment, segment.owner()); }

void PageMap::erase(const DeviceSegment& segment) noexcept { set(segment, Owner{}); }

}  // namespace ashlar::inline v0::cache
