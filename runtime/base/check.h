// Defines ENFORCE, which checks an invariant that the program itself must guarantee. A failure is a
// bug in this project, never bad input, which must be reported as a Status. If the check fails, the
// process prints the location and the reason and aborts, in every build. TFJOB_DCHECK does the
// same, but only in builds without NDEBUG.
#pragma once

#include <string_view>

namespace tfjob {
[[noreturn]] void EnforceFailed(const char* file, int line, const char* expression,
                                std::string_view reason);
}  // namespace tfjob

#define ENFORCE(condition, reason)                                    \
  do {                                                                \
    if (!(condition)) [[unlikely]]                                    \
      ::tfjob::EnforceFailed(__FILE__, __LINE__, #condition, reason); \
  } while (false)

#ifdef NDEBUG
#define TFJOB_DCHECK(condition, reason) \
  do {                                  \
  } while (false)
#else
#define TFJOB_DCHECK(condition, reason) ENFORCE(condition, reason)
#endif
