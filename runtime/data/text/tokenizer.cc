#include "runtime/data/text/tokenizer.h"

#include "runtime/base/fnv1a.h"

namespace tfjob::text {

uint64_t HashOf(const SpecialTokens& special) {
  Fnv1a hash;
  for (const std::optional<int64_t>& id :
       {special.begin, special.end, special.padding, special.unknown}) {
    hash.AddWord(static_cast<uint64_t>(id.value_or(-1)));
  }
  return hash.hash();
}

}  // namespace tfjob::text
