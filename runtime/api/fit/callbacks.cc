// Implements the callbacks of callback.h.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/api/access.h"
#include "runtime/api/callback.h"
#include "runtime/api/fit/backup.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/model/keras/write.h"
#include "runtime/train/model_dir/summary_writer.h"

namespace tfjob::api {
namespace {

// Compares the values of a metric from epoch to epoch.
class Monitor {
 public:
  Monitor(std::string metric, std::string mode, double min_delta)
      : metric_(std::move(metric)), mode_(std::move(mode)), min_delta_(std::fabs(min_delta)) {}

  // Determines whether larger values of the metric are better. Returns InvalidArgument if the mode
  // is unknown.
  tfjob::Status Begin(const FitControl& run) {
    larger_ = mode_ == "auto" ? run.LargerIsBetter(metric_) : std::optional<bool>(mode_ == "max");
    if (mode_ == "auto" || mode_ == "min" || mode_ == "max") return OkStatus();
    return InvalidArgument("mode: expected one of auto, min, max, got \"", mode_, "\"");
  }

  // Returns the metric's value, or nullopt if the metric is missing because the epoch had no
  // validation.
  StatusOr<std::optional<double>> ValueIn(const FitControl& run, const Metrics& metrics) const {
    if (metrics.has(metric_) && larger_) return std::optional<double>(metrics[metric_]);
    if (metrics.has(metric_)) {
      return InvalidArgument("mode: whether larger or smaller values of ", metric_,
                             " are better is unknown; set mode to max or min");
    }
    const bool of_validation = metric_.starts_with("val_");
    if (of_validation && run.validates() && !metrics.has("val_loss"))
      return std::optional<double>();
    std::vector<std::string> names;
    for (const auto& [name, value] : metrics.values()) names.push_back(name);
    return InvalidArgument("monitor: there is no metric ", metric_, "; expected one of ",
                           absl::StrJoin(names, ", "),
                           of_validation && !run.validates()
                               ? "; set FitOptions::validation (if the job has an evaluator, only "
                                 "the evaluator validates)"
                               : "");
  }

  // Returns whether the value is an improvement, which NaN never is.
  bool Improves(double value, std::optional<double> best) const {
    if (!best) return !std::isnan(value);
    return *larger_ ? value - min_delta_ > *best : value + min_delta_ < *best;
  }

 private:
  const std::string metric_, mode_;
  const double min_delta_;
  std::optional<bool> larger_;  // whether larger values are better; set by Begin
};

class EarlyStoppingHooks : public CallbackHooks {
 public:
  explicit EarlyStoppingHooks(const EarlyStopping& options)
      : options_(options), monitor_(options.monitor, options.mode, options.min_delta) {}

  Status OnTrainBegin(FitControl& run) override {
    waited_ = 0;
    best_.reset();
    values_ = nullptr;
    return ToPublic(monitor_.Begin(run));
  }

  bool MayStopTraining() const override { return true; }

  Status OnEpochEnd(FitControl& run, int64_t epoch, const Metrics& metrics) override {
    const StatusOr<std::optional<double>> value = monitor_.ValueIn(run, metrics);
    if (!value.ok()) return ToPublic(value.status());
    if (!*value || epoch < options_.start_from_epoch) return {};
    const bool better = monitor_.Improves(**value, best_);
    if (options_.restore_best_weights && (better || values_ == nullptr)) {
      auto copied = run.Values();
      if (!copied.ok()) return copied.status();
      values_ = *std::move(copied);
    }
    ++waited_;
    if (better) {
      best_ = **value;
      if (monitor_.Improves(**value, options_.baseline)) waited_ = 0;
      return {};
    }
    return waited_ >= options_.patience && epoch > 0 ? run.StopTraining() : Status();
  }

  Status OnTrainEnd(FitControl& run) override {
    if (values_ != nullptr) run.EndWith(std::exchange(values_, nullptr));
    return {};
  }
  void OnTrainAbort() override { values_ = nullptr; }

 private:
  const EarlyStopping options_;
  Monitor monitor_;
  int64_t waited_ = 0;
  std::optional<double> best_;
  std::shared_ptr<const FitValues> values_;  // of the best epoch
};

class PlateauHooks : public CallbackHooks {
 public:
  explicit PlateauHooks(const ReduceLROnPlateau& options)
      : options_(options), monitor_(options.monitor, options.mode, options.min_delta) {}

  Status OnTrainBegin(FitControl& run) override {
    waited_ = cooling_ = 0;
    best_.reset();
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
    if (cooling_ > 0) {
      --cooling_;
      waited_ = 0;
    }
    if (monitor_.Improves(**value, best_)) {
      best_ = **value;
      waited_ = 0;
      return {};
    }
    if (cooling_ > 0 || ++waited_ < options_.patience) return {};
    const double rate = run.learning_rate();
    if (rate <= options_.min_lr) return {};
    cooling_ = options_.cooldown;
    waited_ = 0;
    return run.SetLearningRate(std::max(rate * options_.factor, options_.min_lr));
  }

 private:
  const ReduceLROnPlateau options_;
  Monitor monitor_;
  int64_t waited_ = 0, cooling_ = 0;
  std::optional<double> best_;
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

// Returns whether `text` consists of an optional width and an optional precision: "", "02", ".3" or
// "8.3".
bool IsWidth(const std::string& text) {
  const size_t point = text.find('.');
  const auto digits = [](const std::string& part) {
    return part.find_first_not_of("0123456789") == std::string::npos && part.size() <= 2;
  };
  if (point == std::string::npos) return digits(text);
  const std::string precision = text.substr(point + 1);
  return digits(text.substr(0, point)) && digits(precision) && !precision.empty();
}

// Formats the value. `format` is the part of {NAME:FORMAT} that begins with the colon, such as
// ":02d" or ":.3f"; "" if there is none.
StatusOr<std::string> Formatted(double value, const std::string& format) {
  if (format.empty()) return StrCat(value);
  const std::string digits = format.size() < 2 ? "" : format.substr(1, format.size() - 2);
  const bool whole = format.back() == 'd';
  const bool known =
      format.size() >= 2 && std::string("dfeg").find(format.back()) != std::string::npos;
  if (!known || !IsWidth(digits)) {
    return InvalidArgument("path: the format \"", format.substr(1),
                           "\" is not supported; use one such as 02d, .3f, .2e or g");
  }
  std::array<char, 512> text;  // large enough for 1e308 with %99.99f
  const std::string print = StrCat("%", digits, whole ? "lld" : format.substr(format.size() - 1));
  const int size = whole ? std::snprintf(text.data(), text.size(), print.c_str(),
                                         std::isfinite(value) ? std::llround(value) : 0LL)
                         : std::snprintf(text.data(), text.size(), print.c_str(), value);
  return std::string(text.data(), static_cast<size_t>(std::clamp(size, 0, 511)));
}

// Replaces {epoch} and {NAME}, where NAME is a metric, in the path. If `metrics` is null, only
// checks the formats.
StatusOr<std::string> PathOf(const std::string& path, int64_t epoch, const Metrics* metrics) {
  std::string made;
  for (size_t at = 0; at < path.size();) {
    const size_t open = path.find('{', at);
    const size_t close = open == std::string::npos ? open : path.find('}', open);
    if (close == std::string::npos) return made + path.substr(at);
    made += path.substr(at, open - at);
    const std::string field = path.substr(open + 1, close - open - 1);
    const std::string name = field.substr(0, field.find(':'));
    const std::string format = field.substr(name.size());
    if (name == "epoch" && format.empty()) {
      made += StrCat(epoch + 1);
    } else {
      if (name != "epoch" && metrics != nullptr && !metrics->has(name))
        return InvalidArgument("path: {", field, "}: there is no metric ", name);
      const double number = name == "epoch" ? static_cast<double>(epoch + 1)
                                            : (metrics == nullptr ? 0 : (*metrics)[name]);
      ASSIGN_OR_RETURN(const std::string text, Formatted(number, format));
      made += text;
    }
    at = close + 1;
  }
  return made;
}

class CheckpointHooks : public CallbackHooks {
 public:
  explicit CheckpointHooks(const ModelCheckpoint& options)
      : options_(options),
        monitor_(options.monitor, options.mode, 0),
        best_(options.initial_value_threshold) {}

  Status OnTrainBegin(FitControl& run) override {
    const tfjob::Status begun = monitor_.Begin(run);
    return ToPublic(begun.ok() ? CheckPath() : begun);
  }

  Status OnEpochEnd(FitControl& run, int64_t epoch, const Metrics& metrics) override {
    if (options_.save_best_only) {
      const StatusOr<std::optional<double>> value = monitor_.ValueIn(run, metrics);
      if (!value.ok()) return ToPublic(value.status());
      if (!*value || !monitor_.Improves(**value, best_)) return {};
      best_ = **value;
    }
    const StatusOr<std::string> path = PathOf(options_.path, epoch, &metrics);
    if (!path.ok()) return ToPublic(path.status());
    if (!run.is_chief()) return {};
    const tfjob::Status made = MakeDirectories(ParentFolder(*path));
    return made.ok() ? run.Save(*path) : ToPublic(made);
  }

 private:
  // Returns the first error in the path that can be detected before the first epoch has ended.
  tfjob::Status CheckPath() const {
    RETURN_IF_ERROR(PathOf(options_.path, 0, nullptr).status());
    std::string formats;
    for (const char* format : keras::kWrittenFormats) {
      if (options_.path.ends_with(format)) return OkStatus();
      formats += StrCat(formats.empty() ? "" : ", ", format);
    }
    return InvalidArgument("ModelCheckpoint: path: expected a name that ends in one of ", formats,
                           ", got \"", options_.path, "\"");
  }

  const ModelCheckpoint options_;
  Monitor monitor_;
  std::optional<double> best_;
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
    return {};
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
    for (auto& [folder, values] : points) {
      auto& writer = writers_[folder];
      if (writer == nullptr) {
        writer = std::make_unique<train::SummaryWriter>(
            train::SummaryOptions{.folder = StrCat(options_.log_dir, "/", folder),
                                  .show = [](const std::string&) {}},
            RealClock());
      }
      writer->AddScalars(epoch, std::move(values));
    }
    return {};
  }

  Status OnTrainEnd(FitControl&) override {
    writers_.clear();  // writes the remaining events
    return {};
  }
  void OnTrainAbort() override { writers_.clear(); }

 private:
  const TensorBoard options_;
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

ModelCheckpoint::operator Callback() const {
  return std::make_shared<CheckpointHooks>(*this);
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
