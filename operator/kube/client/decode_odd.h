// Reads objects that the fast reader rejects or that would take too much memory. API servers store
// more than any reader here accepts: nesting up to 10,000 levels, numbers of any size, more than a
// megabyte of empty objects. The part that cannot be read is left out, so that the object can still
// be named, reported on and cleaned up.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// The largest number of values read from an object; further values are left out. A value takes
// about 80 bytes of memory, but as few as 3 bytes of text. Ordinary objects have fewer than 5,000
// values.
inline constexpr size_t kMaxJsonValues = 50'000;

// Returns true if the text may contain more than kMaxJsonValues values. Cheap for short texts.
bool HasTooManyValues(std::string_view text);

struct OddJson {
  Json object;  // without metadata.managedFields and without the parts that cannot be read
  // OK, or InvalidArgument with one line for each of the first few parts that were left out, as in
  // "spec.template.x: nested deeper than 200 levels".
  Status problem;
};
// Reads an object. Returns InvalidArgument if the text is not a JSON object.
StatusOr<OddJson> ReadOddJson(std::string_view text);

}  // namespace tfjob::kube
