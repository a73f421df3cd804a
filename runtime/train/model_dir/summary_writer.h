// Writes summaries (TensorBoard event files) in the background. A full, failing or hanging disk
// never blocks the caller: the failure is logged and shown, and the write is repeated. If too many
// summaries are waiting, further summaries are dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/file_system.h"

namespace tfjob::train {

struct SummaryOptions {
  std::string folder;
  // Called, on any thread, when the problem to show to users changes. `problem` is "" if there is
  // none.
  std::function<void(const std::string& problem)> show;
  Duration retry{10s};
  size_t most_waiting = 4096;
  FileSystem* files = &RealFileSystem();  // must never be destroyed if its operations may hang
};

// Owned by one thread.
class SummaryWriter {
 public:
  // The folder and its event file are created with the first summary. `clock` must outlive the
  // writer.
  SummaryWriter(SummaryOptions options, Clock& clock);
  // Waits for up to 5 s until all summaries are written.
  ~SummaryWriter();

  // Adds one point per tag at `step`.
  void AddScalars(int64_t step, std::vector<std::pair<std::string, double>> values);
  // Adds the graph that TensorBoard shows, as the bytes of TensorFlow's GraphDef.
  void AddGraph(std::string graph_def);
  // Makes TensorBoard discard the summaries that an earlier run wrote for the steps after `step`.
  // Call after a restore.
  void AddStart(int64_t step);
  // Waits until everything is written, an attempt has failed, or `timeout` has passed.
  void Flush(Duration timeout);
  // Stops the writer without waiting. Its thread writes the waiting summaries if it can.
  // Afterwards, only the destructor may be called.
  void Abandon();

 private:
  struct Entry;
  struct Shared;
  void Add(Entry entry);
  static void Run(const std::shared_ptr<Shared>& shared);

  Clock& clock_;
  const std::shared_ptr<Shared> shared_;  // shared with the thread, which may outlive the writer
  std::thread thread_;
};

}  // namespace tfjob::train
