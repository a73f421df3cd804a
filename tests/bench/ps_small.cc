// Measures the exchange of many small variables between a worker and a parameter server over
// loopback TCP: the worker sends gradients, the server applies SGD, and the worker receives values.
#include <CLI/CLI.hpp>

#include "tests/bench/exchange.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("Exchange of many small variables with a parameter server");
  int64_t variables = 1000;
  int64_t bytes = 4096;
  int rounds = 200;
  app.add_option("--variables", variables, "number of variables")->check(CLI::Range(1, 1'000'000));
  app.add_option("--bytes", bytes, "of each variable")->transform(CLI::AsSizeValue(false));
  app.add_option("--rounds", rounds, "exchanges measured");
  CLI11_PARSE(app, argc, argv);
  Exchange exchange({.bytes = variables * bytes, .variable_bytes = bytes});
  const Times times = Measure(exchange, rounds);
  Report("ps-small")
      .Add("variables", variables)
      .Add("bytes", bytes)
      .Add("rounds", rounds)
      .Add("ms_per_exchange", times.wall_s * 1e3 / rounds)
      .Add("cpu_ms_per_exchange", times.cpu_s * 1e3 / rounds)
      .Print(times);
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
