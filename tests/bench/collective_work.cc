// Prints the work of the busiest rank in collective operations, as the cost model of plans counts
// it (runtime/collectives/plan/plan.h). Used by scale_model.py. Prints one JSON line per operation
// and algorithm.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/collectives/plan/plan.h"

namespace tfjob::bench {
namespace {

using collectives::Algorithm;
using collectives::Costs;
using collectives::Operation;

// Returns a table in which every cost is 0. Predictions are sums of costs, so if one cost is set to
// 1, a prediction is the number of times that this cost arises.
Costs Free() {
  return {.round = 0, .frame = 0, .byte = 0, .reduced_byte = 0};
}

void Print(const std::string& name, const collectives::Call& call, int ranks, Algorithm algorithm) {
  const auto count = [&](double Costs::* cost) {
    Costs costs = Free();
    costs.*cost = 1;
    return collectives::PredictSeconds(call, ranks, algorithm, costs);
  };
  const bool chosen = collectives::ChooseAlgorithm(call, ranks, Costs()) == algorithm;
  std::printf(
      "{\"operation\":\"%s\",\"ranks\":%d,\"bytes\":%lld,\"algorithm\":\"%s\",\"chosen\":%s,"
      "\"rounds\":%.17g,\"frames\":%.17g,\"sent\":%.17g,\"reduced\":%.17g}\n",
      name.c_str(), ranks, static_cast<long long>(call.bytes),
      std::string(collectives::Name(algorithm)).c_str(), chosen ? "true" : "false",
      count(&Costs::round), count(&Costs::frame), count(&Costs::byte), count(&Costs::reduced_byte));
}

const std::map<std::string, Operation>& Operations() {
  static const auto& operations = *new std::map<std::string, Operation>{
      {"all_reduce", Operation::kAllReduce},
      {"reduce_scatter", Operation::kReduceScatter},
      {"all_gather", Operation::kAllGather},
  };
  return operations;
}

void PrintOperation(const std::string& name, int ranks, int64_t bytes) {
  const collectives::Call call{.operation = Operations().at(name),
                               .bytes = bytes,
                               .element_bytes = sizeof(float),
                               .dtype = DType::kFloat32};
  if (call.operation != Operation::kAllReduce)
    return Print(name, call, ranks, collectives::ChooseAlgorithm(call, ranks, Costs()));
  // Also print algorithms that no plan would use, because the tables compare all algorithms.
  const bool power_of_two = (ranks & (ranks - 1)) == 0;
  for (const Algorithm algorithm :
       {Algorithm::kExchange, Algorithm::kDoubling, Algorithm::kHalving, Algorithm::kDirect}) {
    if (algorithm == Algorithm::kHalving && !power_of_two) continue;
    Print(name, call, ranks, algorithm);
  }
}

int Main(int argc, char** argv) {
  CLI::App app("The work of the busiest rank in collective operations");
  std::string operation = "all_reduce";
  std::vector<int> ranks;
  std::vector<int64_t> bytes;
  std::vector<std::string> operations;
  for (const auto& [name, value] : Operations()) operations.push_back(name);
  app.add_option("--operation", operation, "the collective operation")
      ->check(CLI::IsMember(operations));
  app.add_option("--ranks", ranks, "one or more numbers of ranks")
      ->check(CLI::Range(2, 65536))
      ->required();
  app.add_option("--bytes", bytes, "one or more sizes, in whole float32 elements")->required();
  CLI11_PARSE(app, argc, argv);
  for (const int count : ranks) {
    for (const int64_t size : bytes) PrintOperation(operation, count, size / 4 * 4);
  }
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
