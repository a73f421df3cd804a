// Reads objects that the fast reader rejects or that would need too much memory. API servers store
// objects that no reader here accepts completely: nesting up to 10,000 levels, numbers of any size,
// more than a megabyte of empty objects. The parts that cannot be read are omitted, so that the
// operator can still name, report and clean up the object.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// The maximum number of values that are read from an object; further values are omitted. A value
// needs about 80 bytes of memory, but may have as few as 3 bytes of text. Ordinary objects have
// fewer than 5,000 values.
inline constexpr size_t kMaxJsonValues = 50'000;

// Returns true if the text may contain more than kMaxJsonValues values. Cheap for short texts.
bool HasTooManyValues(std::string_view text);

struct OddJson {
  Json object;  // without metadata.managedFields and without the parts that cannot be read
  // OK, or InvalidArgument with one line for each of the first few omitted parts, such as
  // "spec.template.x: nested deeper than 200 levels".
  Status problem;
};
// Reads an object. Returns InvalidArgument if the text is not a JSON object.
StatusOr<OddJson> ReadOddJson(std::string_view text);

}  // namespace tfjob::kube
