#include "runtime/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tfjob {

void EnforceFailed(const char* file, int line, const char* expression, std::string_view reason) {
  std::fprintf(stderr, "%s:%d: ENFORCE(%s) failed: %.*s\n", file, line, expression,
               static_cast<int>(reason.size()), reason.data());
  std::abort();
}

}  // namespace tfjob
