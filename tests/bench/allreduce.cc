// Measures all-reduce of float32 sums: between processes that are connected by loopback TCP,
// between processes that share memory, or between threads. With two ranks and TCP, also measures a
// bare loop over one more socket, which exchanges the same bytes in the same order without frames,
// plans and errors: the limit of this transport. The two take turns, so that both see the same load
// of the machine.
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/thread.h"
#include "runtime/collectives/reduction.h"
#include "runtime/collectives/shared_communicator.h"
#include "runtime/collectives/shared_operations.h"
#include "runtime/collectives/socket_communicator.h"
#include "runtime/collectives/thread_communicator.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

using collectives::Slice;
using collectives::SliceOf;
using wire::UniqueFd;

constexpr int kTurns = 5;  // of each of the two; their median counts
constexpr int64_t kPiece = 256 << 10;

struct Options {
  int ranks = 2;
  std::vector<int64_t> bytes;
  std::string transport = "tcp";
  int rounds = 0;  // per turn; 0: as many as take about 0.2 s
};

// The figures that a rank reports for one size.
struct Result {
  double seconds = 0;  // per operation
  double cpu_seconds = 0;
};
struct Results {
  Result ours, bare;
  int64_t spun = 0;  // waits of our operations that ended while the rank was spinning
};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);  // a rank works on one thread
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

struct Pair {
  UniqueFd near, far;
};

Pair ConnectOverLoopback() {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ENFORCE(bind(listener.get(), generic, length) == 0 && listen(listener.get(), 1) == 0, "listen");
  getsockname(listener.get(), generic, &length);
  Pair pair;
  pair.near = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ENFORCE(connect(pair.near.get(), generic, length) == 0, "connect");
  pair.far = UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  for (const UniqueFd* end : {&pair.near, &pair.far}) wire::PrepareSocket(end->get());
  return pair;
}

Pair ConnectByUnixSocket() {
  int ends[2];
  ENFORCE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
          "socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// All-reduce of two ranks in place: each reduces one half. Pieces are sent in this order: raw 0,
// raw 1, reduced 0, raw 2, reduced 1, …
class BareLoop {
 public:
  BareLoop(int socket, int rank, std::span<std::byte> values)
      : socket_(socket), scratch_(static_cast<size_t>(kPiece)) {
    const auto count = static_cast<int64_t>(values.size() / sizeof(float));
    const Slice own = SliceOf(count, rank, 2), other = SliceOf(count, 1 - rank, 2);
    const int64_t bytes = std::max(own.count, other.count) * int64_t{sizeof(float)};
    pieces_ = std::max<int64_t>(1, (bytes + kPiece - 1) / kPiece);
    for (int64_t piece = 0; piece < pieces_; ++piece) {
      own_.push_back(PieceOf(values, own, piece));
      other_.push_back(PieceOf(values, other, piece));
    }
    first_ = rank == 0;
  }

  void Run() {
    sent_ = received_ = sent_bytes_ = received_bytes_ = reduced_ = 0;
    while (sent_ < 2 * pieces_ || received_ < 2 * pieces_) {
      const bool sent = Send(), received = Receive();
      if (!sent && !received) Wait();
    }
  }

 private:
  std::span<std::byte> PieceOf(std::span<std::byte> values, Slice slice, int64_t piece) const {
    const Slice part = SliceOf(slice.count, static_cast<int>(piece), static_cast<int>(pieces_));
    return values.subspan(static_cast<size_t>(slice.begin + part.begin) * sizeof(float),
                          static_cast<size_t>(part.count) * sizeof(float));
  }
  // The place of a frame in the order above.
  struct Frame {
    bool raw;
    int64_t piece;
  };
  Frame At(int64_t index) const {
    if (index == 0 || pieces_ == 1) return {index == 0, 0};
    if (index == 2 * pieces_ - 1) return {false, pieces_ - 1};
    return {index % 2 == 1, index % 2 == 1 ? (index + 1) / 2 : index / 2 - 1};
  }
  bool MaySend() const {
    if (sent_ == 2 * pieces_) return false;
    const Frame frame = At(sent_);
    return frame.raw || frame.piece < reduced_;
  }

  bool Send() {
    if (!MaySend()) return false;
    const Frame frame = At(sent_);
    const auto part = (frame.raw ? other_ : own_)[static_cast<size_t>(frame.piece)].subspan(
        static_cast<size_t>(sent_bytes_));
    const ssize_t count = send(socket_, part.data(), part.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) return false;
    sent_bytes_ += count;
    if (static_cast<size_t>(count) == part.size()) ++sent_, sent_bytes_ = 0;
    return true;
  }

  bool Receive() {
    if (received_ == 2 * pieces_) return false;
    const Frame frame = At(received_);
    const std::span<std::byte> own = own_[static_cast<size_t>(frame.piece)];
    const std::span<std::byte> place = frame.raw ? std::span(scratch_).first(own.size())
                                                 : other_[static_cast<size_t>(frame.piece)];
    const auto part = place.subspan(static_cast<size_t>(received_bytes_));
    const ssize_t count = part.empty() ? 0 : recv(socket_, part.data(), part.size(), MSG_DONTWAIT);
    if (count < 0) return false;
    ENFORCE(count > 0 || part.empty(), "the other rank has ended");
    received_bytes_ += count;
    if (static_cast<size_t>(count) < part.size()) return true;
    ++received_;
    received_bytes_ = 0;
    if (!frame.raw) return true;
    ++reduced_;
    collectives::Combine(DType::kFloat32, collectives::Reduction::kSum, own, first_ ? own : place,
                         first_ ? place : own);
    return true;
  }

  void Wait() const {
    pollfd entry{.fd = socket_, .events = POLLIN, .revents = 0};
    if (MaySend()) entry.events |= POLLOUT;
    poll(&entry, 1, -1);
  }

  const int socket_;
  bool first_ = true;
  int64_t pieces_ = 1;
  std::vector<std::span<std::byte>> own_, other_;
  std::vector<std::byte> scratch_;
  int64_t sent_ = 0, received_ = 0, sent_bytes_ = 0, received_bytes_ = 0, reduced_ = 0;
};

void Must(const Status& status) {
  ENFORCE(status.ok(), status.ToString());
}

// Measures `rounds` calls, between two barriers.
template <typename Operation>
Result Turn(collectives::Communicator& communicator, int rounds, const Operation& operation) {
  Must(communicator.Barrier());
  const double start = Now(), cpu = CpuSeconds();
  for (int i = 0; i < rounds; ++i) operation();
  const double cpu_seconds = CpuSeconds() - cpu;
  return {(Now() - start) / rounds, cpu_seconds};
}

// Sums 1, 2, … over the ranks once, and checks every element. Afterwards, all values are 0.
template <typename Operation>
void CheckSum(const collectives::Communicator& communicator, std::span<std::byte> bytes,
              const Operation& operation) {
  const std::span<float> values(reinterpret_cast<float*>(bytes.data()),
                                bytes.size() / sizeof(float));
  const int ranks = communicator.size();
  std::ranges::fill(values, static_cast<float>(communicator.rank() + 1));
  operation();
  const auto sum = static_cast<float>(ranks * (ranks + 1) / 2);
  ENFORCE(std::ranges::count(values, sum) == std::ssize(values), "the sum is wrong");
  std::ranges::fill(values, 0.f);
}

Result Median(std::vector<Result> turns) {
  std::ranges::sort(turns, {}, &Result::seconds);
  Result result{turns[turns.size() / 2].seconds, 0};
  for (const Result& turn : turns) result.cpu_seconds += turn.cpu_seconds;
  return result;
}

int RoundsFor(const Options& options, int64_t bytes) {
  if (options.rounds > 0) return options.rounds;
  return static_cast<int>(std::clamp<int64_t>((int64_t{200} << 20) / (bytes + 1), 4, 4000));
}

int64_t SpunWaits(const collectives::Communicator& communicator) {
  const auto* shared = dynamic_cast<const collectives::SharedOperations*>(&communicator);
  return shared != nullptr ? shared->board().spun() : 0;
}

// Measures one size on one rank. `bare` is −1 if there is no bare loop.
Results MeasureSize(const Options& options, collectives::Communicator& communicator, int bare,
                    int64_t bytes) {
  const auto memory = communicator.Allocate(static_cast<size_t>(bytes));
  Must(memory.status());
  const std::span<std::byte> values = (*memory)->bytes();
  BareLoop loop(bare, communicator.rank(), values);
  const auto ours = [&] {
    Must(communicator.AllReduce(values, DType::kFloat32, collectives::Reduction::kSum));
  };
  const auto theirs = [&] { loop.Run(); };
  const int rounds = RoundsFor(options, bytes);
  CheckSum(communicator, values, ours);
  Turn(communicator, std::min(rounds, 10), ours);  // windows, pages
  if (bare >= 0) {
    CheckSum(communicator, values, theirs);
    Turn(communicator, std::min(rounds, 10), theirs);
  }
  const int64_t spun = SpunWaits(communicator);
  std::vector<Result> turns, bare_turns;
  for (int turn = 0; turn < kTurns; ++turn) {
    turns.push_back(Turn(communicator, rounds, ours));
    if (bare >= 0) bare_turns.push_back(Turn(communicator, rounds, theirs));
  }
  Results results;
  results.spun = SpunWaits(communicator) - spun;
  results.ours = Median(std::move(turns));
  if (bare >= 0) results.bare = Median(std::move(bare_turns));
  return results;
}

// The ranks as processes, forked when all sockets are connected, or as threads.
class Ranks {
 public:
  explicit Ranks(const Options& options) : options_(options) {
    const auto ranks = static_cast<size_t>(options.ranks);
    if (options.transport == "threads") {
      communicators_ = collectives::MakeThreadCommunicators(options.ranks);
    } else {
      Connect(ranks);
    }
    if (HasBareLoop()) bare_ = ConnectOverLoopback();
    for (int rank = 0; rank < options.ranks; ++rank) Start(rank);
    sockets_.clear();
    bare_ = {};
  }
  ~Ranks() {
    for (const pid_t process : processes_) waitpid(process, nullptr, 0);
    for (Thread& thread : threads_) thread.Join();
  }

  // The next size's results of all ranks: the time of the slowest, and the sum of the CPU time.
  Results Next() {
    Results all;
    for (const UniqueFd& pipe : pipes_) {
      Results one;
      ENFORCE(read(pipe.get(), &one, sizeof one) == ssize_t{sizeof one},
              "a rank has failed; see above");
      all.spun += one.spun;
      for (Result Results::* what : {&Results::ours, &Results::bare}) {
        (all.*what).seconds = std::max((all.*what).seconds, (one.*what).seconds);
        (all.*what).cpu_seconds += (one.*what).cpu_seconds;
      }
    }
    return all;
  }

  bool HasBareLoop() const { return options_.ranks == 2 && options_.transport == "tcp"; }

 private:
  void Connect(size_t ranks) {
    sockets_.resize(ranks);
    for (auto& row : sockets_) row.resize(ranks);
    for (size_t a = 0; a < ranks; ++a) {
      for (size_t b = a + 1; b < ranks; ++b) {
        Pair pair = options_.transport == "tcp" ? ConnectOverLoopback() : ConnectByUnixSocket();
        sockets_[a][b] = std::move(pair.near);
        sockets_[b][a] = std::move(pair.far);
      }
    }
  }

  void Start(int rank) {
    int ends[2];
    ENFORCE(pipe(ends) == 0, "pipe");
    if (options_.transport == "threads") {
      pipes_.emplace_back(ends[0]);
      threads_.emplace_back("rank", [this, rank, report = ends[1]] {
        Work(*communicators_[static_cast<size_t>(rank)], report);
        close(report);
      });
      return;
    }
    const pid_t process = fork();
    ENFORCE(process >= 0, "fork");
    if (process == 0) {
      Work(*MakeCommunicator(rank), ends[1]);
      _exit(0);
    }
    close(ends[1]);
    pipes_.emplace_back(ends[0]);
    processes_.push_back(process);
  }

  // Makes the communicator of a process.
  std::unique_ptr<collectives::Communicator> MakeCommunicator(int rank) {
    std::vector<UniqueFd> own = std::move(sockets_[static_cast<size_t>(rank)]);
    // Otherwise this process would keep the connections of a rank that has died open.
    sockets_.clear();
    auto made =
        options_.transport == "tcp"
            ? collectives::MakeSocketCommunicator({.rank = rank, .sockets = std::move(own)})
            : collectives::MakeSharedCommunicator({.rank = rank, .sockets = std::move(own)});
    ENFORCE(made.ok(), made.status().ToString());
    return std::move(made).value();
  }

  void Work(collectives::Communicator& communicator, int report) {
    int bare = -1;
    if (HasBareLoop()) bare = (communicator.rank() == 0 ? bare_.near : bare_.far).get();
    for (const int64_t bytes : options_.bytes) {
      const Results results = MeasureSize(options_, communicator, bare, bytes);
      ENFORCE(write(report, &results, sizeof results) == ssize_t{sizeof results}, "pipe");
    }
    // No rank leaves before all have measured.
    Must(communicator.Barrier());
  }

  const Options& options_;
  std::vector<std::vector<UniqueFd>> sockets_;
  Pair bare_;
  std::vector<UniqueFd> pipes_;
  std::vector<pid_t> processes_;
  std::vector<std::unique_ptr<collectives::Communicator>> communicators_;
  std::vector<Thread> threads_;
};

void Print(const Options& options, int64_t bytes, const char* what, const Result& result,
           int64_t spun) {
  const double ranks = options.ranks, size = static_cast<double>(bytes);
  const double rounds = RoundsFor(options, bytes) * kTurns;
  Report("allreduce")
      .Add("what", what)
      .Add("transport", options.transport)
      .Add("ranks", options.ranks)
      .Add("bytes", bytes)
      .Add("bus_bytes_per_s", 2 * (ranks - 1) / ranks * size / result.seconds)
      .Add("seconds", result.seconds)
      .Add("cpu_seconds_per_gb", result.cpu_seconds / (rounds * size * ranks * 1e-9))
      .Add("spun", spun)
      .Print({result.seconds * rounds, result.cpu_seconds});
}

int Main(int argc, char** argv) {
  CLI::App app("All-reduce of float32 sums between processes or threads");
  Options options;
  app.add_option("--ranks", options.ranks, "processes or threads")->check(CLI::Range(2, 64));
  app.add_option("--bytes", options.bytes, "one or more sizes; 64 B to 64 MiB without")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--transport", options.transport, "how the ranks exchange values")
      ->check(CLI::IsMember({"tcp", "shm", "threads"}));
  app.add_option("--rounds", options.rounds, "operations per turn");
  CLI11_PARSE(app, argc, argv);
  if (options.bytes.empty()) {
    options.bytes = {64,      1 << 10, 4 << 10,  32 << 10, 256 << 10,
                     1 << 20, 8 << 20, 25 << 20, 64 << 20};
  }
  for (int64_t& bytes : options.bytes) bytes = std::max<int64_t>(4, bytes / 4 * 4);
  Ranks ranks(options);
  for (const int64_t bytes : options.bytes) {
    const Results results = ranks.Next();
    Print(options, bytes, "tfjob", results.ours, results.spun);
    if (ranks.HasBareLoop()) Print(options, bytes, "bare loop", results.bare, 0);
  }
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
