// Measures two ways to exchange the gradient of a table between processes: sending its rows, as the
// strategies do, and reducing the whole gradient. The time for sending rows includes packing the
// rows and adding them up; the time for the whole gradient is that of the all-reduce alone. The two
// ways alternate, so that both are measured under the same load of the machine. The bytes on the
// wire are those that the operating system has sent (TCP_INFO).
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/strategy/gradient_rows.h"
#include "tests/bench/ranks.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

using collectives::Communicator;

constexpr int kTurns = 5;  // turns of each way; medians are reported

struct Options {
  int ranks = 2;
  int64_t rows = 1'000'000, cols = 64;
  int64_t batch = 4096;  // rows that a rank looks up per step
  std::string transport = "tcp";
  int rounds = 50, whole_rounds = 2;  // rounds per turn
};

// Contains the measurements of one way to exchange the gradient.
struct Way {
  Result result;
  double wire_bytes = 0;  // bytes that a rank sends per exchange
};
struct Results {
  Way by_rows, whole;
  int64_t rows = 0;  // distinct rows of this rank
};

// Counts the bytes that the sockets of a rank have sent.
class WireCount {
 public:
  explicit WireCount(const std::vector<wire::UniqueFd>& sockets) {
    for (const wire::UniqueFd& socket : sockets)
      if (socket.valid()) copies_.emplace_back(dup(socket.get()));
  }
  // Returns the number of bytes sent so far, or 0 if the transport is not TCP.
  double Sent() const {
    double bytes = 0;
    for (const wire::UniqueFd& socket : copies_) {
      tcp_info info{};
      socklen_t length = sizeof info;
      if (getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0)
        bytes += static_cast<double>(info.tcpi_bytes_sent);
    }
    return bytes;
  }

 private:
  std::vector<wire::UniqueFd> copies_;
};

// Returns the rows that a rank looks up.
std::vector<int64_t> RowsOf(const Options& options, int rank) {
  std::mt19937_64 random(static_cast<uint64_t>(rank));
  std::uniform_int_distribution<int64_t> row(0, options.rows - 1);
  std::set<int64_t> rows;
  for (int64_t i = 0; i < options.batch; ++i) rows.insert(row(random));
  return {rows.begin(), rows.end()};
}

class Rank {
 public:
  Rank(const Options& options, Communicator& communicator, const WireCount& wire)
      : options_(options),
        communicator_(communicator),
        wire_(wire),
        indices_(RowsOf(options, communicator.rank())),
        values_(indices_.size() * static_cast<size_t>(options.cols), 1.f),
        exchange_({{.variable = 0, .name = "table", .rows = options.rows, .cols = options.cols}}) {}

  Results Measure() {
    auto memory =
        communicator_.Allocate(static_cast<size_t>(options_.rows * options_.cols) * sizeof(float));
    Must(memory.status());
    const auto by_rows = [&] { ExchangeRows(); };
    const auto whole = [&] {
      Must(communicator_.AllReduce((*memory)->bytes(), DType::kFloat32,
                                   collectives::Reduction::kSum));
    };
    ExchangeRows();
    Check();
    whole();
    std::vector<Result> by_rows_turns, whole_turns;
    Results results{.rows = std::ssize(indices_)};
    for (int turn = 0; turn < kTurns; ++turn) {
      by_rows_turns.push_back(Count(options_.rounds, by_rows, results.by_rows));
      whole_turns.push_back(Count(options_.whole_rounds, whole, results.whole));
    }
    results.by_rows.result = Median(std::move(by_rows_turns));
    results.whole.result = Median(std::move(whole_turns));
    Must(communicator_.Barrier());  // wait until all ranks have finished
    return results;
  }

 private:
  void ExchangeRows() {
    exchange_.Begin();
    exchange_.Set(0, indices_, std::as_bytes(std::span(values_)), 0.5);
    Must(exchange_.Exchange(communicator_));
  }

  // Compares the sum of the gradients with a sum that is computed by plain loops.
  void Check() const {
    std::multiset<int64_t> expected;
    for (int rank = 0; rank < options_.ranks; ++rank)
      for (const int64_t row : RowsOf(options_, rank)) expected.insert(row);
    const strategy::GradientRows::Rows sum = exchange_.Sum(0);
    const auto* values = reinterpret_cast<const float*>(sum.values.data());
    for (size_t i = 0; i < sum.indices.size(); ++i) {
      const auto ranks = static_cast<float>(expected.count(sum.indices[i]));
      const auto at = static_cast<int64_t>(i) * options_.cols;
      ENFORCE(ranks > 0 && values[at] == 0.5f * ranks, "the sum is wrong");
      expected.erase(sum.indices[i]);
    }
    ENFORCE(expected.empty(), "a row is missing");
  }

  template <typename Run>
  Result Count(int rounds, const Run& run, Way& way) {
    const double before = wire_.Sent();
    const Result result = Turn(communicator_, rounds, run);
    way.wire_bytes += (wire_.Sent() - before) / (rounds * kTurns);
    return result;
  }

  const Options& options_;
  Communicator& communicator_;
  const WireCount& wire_;
  const std::vector<int64_t> indices_;
  const std::vector<float> values_;
  strategy::GradientRows exchange_;
};

// Runs a rank in this process.
Results RunRank(const Options& options, int rank, Sockets sockets) {
  const WireCount wire(sockets[static_cast<size_t>(rank)]);
  BindToProcessor(rank, options.ranks);
  const auto communicator = MakeCommunicator(rank, std::move(sockets), options.transport);
  return Rank(options, *communicator, wire).Measure();
}

void Print(const Options& options, const char* what, const Way& way, int64_t rows, int rounds) {
  const double row_bytes = static_cast<double>(rows * options.cols) * sizeof(float);
  Report("allreduce-rows")
      .Add("what", what)
      .Add("transport", options.transport)
      .Add("ranks", options.ranks)
      .Add("rows", options.rows)
      .Add("cols", options.cols)
      .Add("batch", options.batch)
      .Add("seconds", way.result.seconds)
      .Add("touched_bytes", row_bytes)
      .Add("wire_bytes", way.wire_bytes)
      .Print({way.result.seconds * rounds * kTurns, way.result.cpu_seconds});
}

// Merges the measurements of a rank into those of all ranks: adds up CPU times and bytes, and keeps
// the time of the slowest rank.
void Merge(const Way& one, Way& all) {
  all.result.seconds = std::max(all.result.seconds, one.result.seconds);
  all.result.cpu_seconds += one.result.cpu_seconds;
  all.wire_bytes += one.wire_bytes;
}

int Main(int argc, char** argv) {
  CLI::App app("The exchange of a table's gradient, by rows and as a whole");
  Options options;
  app.add_option("--ranks", options.ranks, "processes")->check(CLI::Range(2, 64));
  app.add_option("--rows", options.rows, "rows of the table")->check(CLI::PositiveNumber);
  app.add_option("--cols", options.cols, "values of a row")->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "rows that each rank looks up in a step")
      ->check(CLI::PositiveNumber);
  app.add_option("--transport", options.transport, "how the ranks exchange values")
      ->check(CLI::IsMember({"tcp", "shm"}));
  app.add_option("--rounds", options.rounds, "exchanges by rows per turn")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const auto run = [&](int rank, Sockets sockets) {
    return RunRank(options, rank, std::move(sockets));
  };
  Sockets sockets = ConnectRanks(static_cast<size_t>(options.ranks), options.transport);
  Results all;
  for (const Results& one : RunRanks<Results>(std::move(sockets), run)) {
    Merge(one.by_rows, all.by_rows);
    Merge(one.whole, all.whole);
    all.rows += one.rows;
  }
  Print(options, "rows", all.by_rows, all.rows, options.rounds);
  Print(options, "whole", all.whole, all.rows, options.whole_rounds);
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
