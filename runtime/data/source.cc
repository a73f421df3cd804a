#include "runtime/data/source.h"

#include <algorithm>

namespace tfjob::data {

const Field* Source::Find(std::string_view name) const {
  const auto found = std::ranges::find(fields(), name, &Field::name);
  return found == fields().end() ? nullptr : &*found;
}

}  // namespace tfjob::data
