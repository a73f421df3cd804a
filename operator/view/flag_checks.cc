#include "operator/view/flag_checks.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "runtime/base/status.h"

namespace tfjob::view {

FlagCheck AtLeast(int least) {
  return [least](const std::string& text) {
    double value = 0;
    const bool good = absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= least;
    return good ? "" : StrCat("expected a number of ", least, " or more, got ", text);
  };
}

}  // namespace tfjob::view
