// Implements the callbacks of callback.h.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>
#include <memory>
#include <utility>

#include "runtime/api/access.h"
#include "runtime/api/callback.h"
#include "runtime/api/fit/backup.h"
#include "runtime/api/fit/monitor.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/train/model_dir/summary_writer.h"

namespace tfjob::api {
namespace {

class EarlyStoppingHooks : public CallbackHooks {
 public:
  explicit EarlyStoppingHooks(const EarlyStopping& options)
      : options_(options), monitor_(options.monitor, options.mode, options.min_delta) {}

  Status OnTrainBegin(FitControl& run) override {
    memory_ = {};
    values_ = nullptr;
    return ToPublic(monitor_.Begin(run));
  }

  bool MayStopTraining() const override { return true; }

  Status OnEpochEnd(FitControl& run, int64_t epoch, const Metrics& metrics) override {
    const StatusOr<std::optional<double>> value = monitor_.ValueIn(run, metrics);
    if (!value.ok()) return ToPublic(value.status());
    if (!*value || epoch < options_.start_from_epoch) return {};
    const bool better = monitor_.Improves(**value, memory_.best);
    if (options_.restore_best_weights && (better || values_ == nullptr)) {
      auto copied = run.Values();
      if (!copied.ok()) return copied.status();
      values_ = *std::move(copied);
    }
    ++memory_.waited;
    if (better) {
      memory_.best = **value;
      if (monitor_.Improves(**value, options_.baseline)) memory_.waited = 0;
      return {};
    }
    return memory_.waited >= options_.patience && epoch > 0 ? run.StopTraining() : Status();
  }

  Status OnTrainEnd(FitControl& run) override {
    if (values_ != nullptr) run.EndWith(std::exchange(values_, nullptr));
    return {};
  }
  void OnTrainAbort() override { values_ = nullptr; }

  // Without the values of the best epoch, which checkpoints lack, the rest would be useless.
  std::string SaveState() const override {
    return options_.restore_best_weights ? "" : memory_.ToText(Owner());
  }
  Status RestoreState(const std::string& state) override {
    if (!options_.restore_best_weights) memory_.Read(state, Owner());
    return {};
  }

 private:
  std::string Owner() const { return StrCat("EarlyStopping ", options_.monitor); }

  const EarlyStopping options_;
  Monitor monitor_;
  CallbackMemory memory_;
  std::shared_ptr<const FitValues> values_;  // of the best epoch
};

class PlateauHooks : public CallbackHooks {
 public:
  explicit PlateauHooks(const ReduceLROnPlateau& options)
      : options_(options), monitor_(options.monitor, options.mode, options.min_delta) {}

  Status OnTrainBegin(FitControl& run) override {
    memory_ = {};
    if (!(options_.factor >= 0 && options_.factor < 1)) {
      return ToPublic(InvalidArgument("ReduceLROnPlateau: factor: expected 0 to below 1, got ",
                                      options_.factor));
    }
    return ToPublic(monitor_.Begin(run));
  }

  bool MaySetLearningRate() const override { return true; }

  Status OnEpochEnd(FitControl& run, int64_t /*epoch*/, const Metrics& metrics) override {
    const StatusOr<std::optional<double>> value = monitor_.ValueIn(run, metrics);
    if (!value.ok()) return ToPublic(value.status());
    if (!*value) return {};
    if (memory_.cooling > 0) {
      --memory_.cooling;
      memory_.waited = 0;
    }
    if (monitor_.Improves(**value, memory_.best)) {
      memory_.best = **value;
      memory_.waited = 0;
      return {};
    }
    if (memory_.cooling > 0 || ++memory_.waited < options_.patience) return {};
    const double rate = run.learning_rate();
    if (rate <= options_.min_lr) return {};
    memory_.cooling = options_.cooldown;
    memory_.waited = 0;
    return run.SetLearningRate(std::max(rate * options_.factor, options_.min_lr));
  }

  std::string SaveState() const override { return memory_.ToText(Owner()); }
  Status RestoreState(const std::string& state) override {
    memory_.Read(state, Owner());
    return {};
  }

 private:
  std::string Owner() const { return StrCat("ReduceLROnPlateau ", options_.monitor); }

  const ReduceLROnPlateau options_;
  Monitor monitor_;
  CallbackMemory memory_;
};

class SchedulerHooks : public CallbackHooks {
 public:
  explicit SchedulerHooks(LearningRateScheduler options) : options_(std::move(options)) {}

  Status OnTrainBegin(FitControl&) override {
    if (options_.schedule) return {};
    return ToPublic(InvalidArgument("LearningRateScheduler: schedule: expected a function"));
  }
  bool MaySetLearningRate() const override { return true; }
  Status OnEpochBegin(FitControl& run, int64_t epoch) override {
    return run.SetLearningRate(options_.schedule(epoch, run.learning_rate()));
  }

 private:
  const LearningRateScheduler options_;
};

class CsvHooks : public CallbackHooks {
 public:
  explicit CsvHooks(const CSVLogger& options) : options_(options) {}

  Status OnTrainBegin(FitControl& run) override {
    names_.clear();
    writes_ = run.is_chief();
    if (!writes_) return {};
    std::ifstream before(options_.file);
    header_ = !options_.append || before.peek() == std::ifstream::traits_type::eof();
    errno = 0;
    file_ = std::ofstream(options_.file, options_.append ? std::ios::app : std::ios::trunc);
    return Written();
  }

  Status OnEpochEnd(FitControl& run, int64_t epoch, const Metrics& metrics) override {
    if (!writes_) return {};
    if (names_.empty()) {
      for (const auto& [name, value] : metrics.values()) {
        names_.push_back(name);
        // The first epoch may have no validation, but later ones need these columns.
        if (run.validates() && !metrics.has("val_loss")) names_.push_back(StrCat("val_", name));
      }
      std::ranges::sort(names_);
      if (header_) file_ << "epoch" << Columns(names_) << "\n";
    }
    std::vector<std::string> values;
    // Epochs without validation lack its metrics.
    for (const std::string& name : names_)
      values.push_back(metrics.has(name) ? Digits(metrics[name]) : "NA");
    errno = 0;
    file_ << epoch << Columns(values) << "\n";
    file_.flush();
    return Written();
  }

  Status OnTrainEnd(FitControl&) override {
    if (!writes_) return {};
    errno = 0;
    file_.close();
    return Written();
  }
  void OnTrainAbort() override { file_.close(); }

 private:
  // Returns the shortest decimal form that reads back as the same number.
  static std::string Digits(double value) {
    std::array<char, 32> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return {text.data(), end};
  }
  std::string Columns(const std::vector<std::string>& values) const {
    std::string columns;
    for (const std::string& value : values) {
      const bool quoted =
          value.find_first_of(std::string("\"\r\n") + options_.separator) != std::string::npos;
      columns += options_.separator;
      columns += quoted ? Quoted(value) : value;
    }
    return columns;
  }
  static std::string Quoted(const std::string& value) {
    std::string quoted = "\"";
    for (const char c : value) quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + "\"";
  }
  Status Written() const {
    if (file_.good()) return {};
    const std::string what = StrCat("CSVLogger: ", options_.file);
    return ToPublic(errno == 0 ? Internal(what, " cannot be written") : ErrnoStatus(errno, what));
  }

  const CSVLogger options_;
  bool writes_ = true;
  bool header_ = true;
  std::vector<std::string> names_;
  std::ofstream file_;
};

class TensorBoardHooks : public CallbackHooks {
 public:
  explicit TensorBoardHooks(const TensorBoard& options) : options_(options) {}

  Status OnTrainBegin(FitControl&) override {
    writers_.clear();
    batches_ = 0;
    if (options_.update_freq >= 0) return {};
    return ToPublic(InvalidArgument("TensorBoard: update_freq: expected at least 0, got ",
                                    options_.update_freq));
  }

  Status OnEpochEnd(FitControl& run, int64_t epoch, const Metrics& metrics) override {
    if (!run.is_chief()) return {};
    constexpr std::string_view kValidation = "val_";
    std::map<std::string, std::vector<std::pair<std::string, double>>> points;
    for (const auto& [name, value] : metrics.values()) {
      const bool validation = name.starts_with(kValidation);
      points[validation ? "validation" : "train"].emplace_back(
          StrCat("epoch_", validation ? name.substr(kValidation.size()) : name), value);
    }
    for (auto& [folder, values] : points) WriterOf(folder).AddScalars(epoch, std::move(values));
    return {};
  }

  bool WantsBatches() const override { return options_.update_freq > 0; }
  Status OnBatchEnd(FitControl& run, int64_t /*batch*/, const Metrics& metrics) override {
    if (!run.is_chief() || ++batches_ % options_.update_freq != 0) return {};
    std::vector<std::pair<std::string, double>> values;
    for (const auto& [name, value] : metrics.values())
      values.emplace_back(StrCat("batch_", name), value);
    WriterOf("train").AddScalars(run.step(), std::move(values));
    return {};
  }

  Status OnTrainEnd(FitControl&) override {
    writers_.clear();  // writes the remaining events
    return {};
  }
  void OnTrainAbort() override { writers_.clear(); }

 private:
  train::SummaryWriter& WriterOf(const std::string& folder) {
    auto& writer = writers_[folder];
    if (writer == nullptr) {
      writer = std::make_unique<train::SummaryWriter>(
          train::SummaryOptions{.folder = StrCat(options_.log_dir, "/", folder),
                                .show = [](const std::string&) {}},
          RealClock());
    }
    return *writer;
  }

  const TensorBoard options_;
  int64_t batches_ = 0;
  std::map<std::string, std::unique_ptr<train::SummaryWriter>> writers_;  // by folder
};

class LambdaHooks : public CallbackHooks {
 public:
  explicit LambdaHooks(LambdaCallback functions) : functions_(std::move(functions)) {}

  Status OnTrainBegin(FitControl& run) override {
    return functions_.on_train_begin ? functions_.on_train_begin(run) : Status();
  }
  Status OnEpochBegin(FitControl& run, int64_t epoch) override {
    return functions_.on_epoch_begin ? functions_.on_epoch_begin(run, epoch) : Status();
  }
  bool WantsBatches() const override {
    return functions_.on_batch_begin != nullptr || functions_.on_batch_end != nullptr;
  }
  Status OnBatchBegin(FitControl& run, int64_t batch) override {
    return functions_.on_batch_begin ? functions_.on_batch_begin(run, batch) : Status();
  }
  Status OnBatchEnd(FitControl& run, int64_t batch, const Metrics& metrics) override {
    return functions_.on_batch_end ? functions_.on_batch_end(run, batch, metrics) : Status();
  }
  Status OnEpochEnd(FitControl& run, int64_t epoch, const Metrics& metrics) override {
    return functions_.on_epoch_end ? functions_.on_epoch_end(run, epoch, metrics) : Status();
  }
  Status OnTrainEnd(FitControl& run) override {
    return functions_.on_train_end ? functions_.on_train_end(run) : Status();
  }

 private:
  const LambdaCallback functions_;
};

}  // namespace

EarlyStopping::operator Callback() const {
  return std::make_shared<EarlyStoppingHooks>(*this);
}

ReduceLROnPlateau::operator Callback() const {
  return std::make_shared<PlateauHooks>(*this);
}

LearningRateScheduler::operator Callback() const {
  return std::make_shared<SchedulerHooks>(*this);
}

CSVLogger::operator Callback() const {
  return std::make_shared<CsvHooks>(*this);
}

TensorBoard::operator Callback() const {
  return std::make_shared<TensorBoardHooks>(*this);
}

BackupAndRestore::operator Callback() const {
  return std::make_shared<BackupHooks>(*this);
}

TerminateOnNaN::operator Callback() const {
  return std::make_shared<NanHooks>();
}

LambdaCallback::operator Callback() const {
  return std::make_shared<LambdaHooks>(*this);
}

}  // namespace tfjob::api
