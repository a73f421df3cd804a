// Implements the program tfjob-operator: parses the flags and runs the operator.
#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <thread>

#include "operator/service/kube_cluster.h"
#include "operator/service/run.h"

namespace tfjob::service {
namespace {

// The maximum time from the stop request to the exit of the process, even if something hangs.
constexpr auto kLeaveWithin = std::chrono::milliseconds(1800);

// Exits without destroying static objects, because threads of libraries may still use them. No log
// line is lost, because each line is flushed when it is written.
[[noreturn]] void Leave(int code) {
  std::cout.flush();
  std::_Exit(code);
}

int Main(int argc, const char* const* argv) {
  // Limit the number of heaps: with one heap per thread, the process would use a third more memory.
  mallopt(M_ARENA_MAX, 2);
  view::Console console{std::cin, std::cout, std::cerr, isatty(STDOUT_FILENO) == 1};
  const auto parsed = ParseOperatorFlags(argc, argv, console);
  if (const auto* quit = std::get_if<OperatorQuit>(&parsed)) return quit->code;
  const auto& options = std::get<OperatorOptions>(parsed);
  ConfigureLogging(options.log_level, options.log_format);
  static StopSource stop;
  StopOnSignals(stop);
  OperatorHooks hooks;
  hooks.leaving = [](int code) {
    std::thread([code] {
      std::this_thread::sleep_for(kLeaveWithin);
      Leave(code);
    }).detach();
  };
  Leave(RunOperator(options, ConnectKube, stop, hooks));
}

}  // namespace
}  // namespace tfjob::service

int main(int argc, char** argv) {
  return tfjob::service::Main(argc, argv);
}
