#include "runtime/base/processor.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

// Marks code that runs before the check. It is compiled for every processor of the architecture,
// regardless of the compiler flags.
#define TFJOB_ANY_PROCESSOR [[gnu::target("arch=x86-64"), gnu::noinline]]

namespace tfjob {
namespace {

TFJOB_ANY_PROCESSOR void Say(const char* text) {
  // Ignore errors, because there is no other way to report them.
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
}

#ifdef __AVX2__  // set by --config=release; other builds run on any processor
// 101 is the first priority that is not reserved for the implementation.
TFJOB_ANY_PROCESSOR [[gnu::constructor(101)]] void CheckAtStart() {
  __builtin_cpu_init();
  RequireProcessor(__builtin_cpu_supports("x86-64-v3"));
}
#endif

}  // namespace

TFJOB_ANY_PROCESSOR void RequireProcessor(bool supported) {
  if (supported) return;
  Say(program_invocation_short_name);
  Say(": this processor lacks AVX2, FMA or another part of x86-64-v3, which this program is built "
      "for; "
      "Intel has had them since Haswell, AMD since Zen\n");
  _exit(1);
}

}  // namespace tfjob
