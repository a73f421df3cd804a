// Implements the benchmark case trace. Measures the cost of recording spans for the threads that
// record them, and the cost of writing a trace.
#include "runtime/trace/trace.h"

#include <CLI/CLI.hpp>
#include <thread>
#include <vector>

#include "runtime/trace/chrome.h"
#include "runtime/trace/totals.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

struct TraceOptions {
  int64_t spans = 200'000;  // spans per thread
  int threads = 2;
};

void RecordSpans(int64_t spans) {
  for (int64_t i = 0; i < spans; ++i) {
    const trace::Span span(trace::Category::kOp, "gradients/dense_1/MatMul", "MatMul");
  }
}

// Measures the cost of recording spans on all threads at the same time.
void Record(const char* what, const TraceOptions& options) {
  Stopwatch watch;
  std::vector<std::thread> threads;
  for (int i = 0; i < options.threads; ++i) threads.emplace_back(RecordSpans, options.spans);
  for (std::thread& thread : threads) thread.join();
  const Times times = watch.Elapsed();
  Report("trace")
      .Add("what", what)
      .Add("threads", options.threads)
      .Add("spans", options.spans)
      .Add("ns_per_span", times.wall_s * 1e9 / static_cast<double>(options.spans))
      .Print(times);
}

void Write(const trace::Trace& trace) {
  Stopwatch watch;
  const std::string text = trace::ChromeTrace(trace, "worker 0");
  const size_t ops = trace::OpTotals(trace).size();
  const Times times = watch.Elapsed();
  Report("trace")
      .Add("what", "text and totals")
      .Add("bytes", text.size())
      .Add("ops", ops)
      .Add("mb_per_s", static_cast<double>(text.size()) / times.wall_s / 1e6)
      .Print(times);
}

int Main(int argc, char** argv) {
  TraceOptions options;
  CLI::App app("The cost of recording spans and of writing a trace", "trace");
  app.add_option("--spans", options.spans, "Spans per thread")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "Threads that record")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  Record("recording is off", options);
  trace::Start();
  Record("recording is on", options);
  Write(trace::Stop());
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
