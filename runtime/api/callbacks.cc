// Implements the callbacks of callback.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/api/access.h"
#include "runtime/api/backup.h"
#include "runtime/api/callback.h"
#include "runtime/base/clock.h"
#include "runtime/train/summary_writer.h"

namespace tfjob::api {
namespace {

// Returns whether larger values of the metric are better.
bool LargerIsBetter(const std::string& metric) {
  for (const char* part : {"acc", "auc", "precision", "recall", "r2_score", "true_positives",
                           "true_negatives", "cosine_similarity"}) {
    if (metric.find(part) != std::string::npos) return true;
  }
  return false;
}

// Follows a metric from epoch to epoch.
class Monitor {
 public:
  Monitor(std::string metric, std::string mode, double min_delta)
      : metric_(std::move(metric)), mode_(std::move(mode)), min_delta_(std::fabs(min_delta)) {}

  // Returns InvalidArgument if the mode is none.
  tfjob::Status Check() const {
    if (mode_ == "auto" || mode_ == "min" || mode_ == "max") return OkStatus();
    return InvalidArgument("mode: expected one of auto, min, max, got \"", mode_, "\"");
  }

  // Returns nullopt if the epoch has no value, because it ended without a validation.
  StatusOr<std::optional<double>> ValueIn(const FitControl& run, const Metrics& metrics) const {
    if (metrics.has(metric_)) return std::optional<double>(metrics[metric_]);
    const bool of_validation = metric_.starts_with("val_");
    if (of_validation && run.validates() && !metrics.has("val_loss"))
      return std::optional<double>();
    std::vector<std::string> names;
    for (const auto& [name, value] : metrics.values()) names.push_back(name);
    return InvalidArgument("monitor: there is no metric ", metric_, "; there are ",
                           absl::StrJoin(names, ", "),
                           of_validation && !run.validates() ? "; set FitOptions::validation" : "");
  }

  bool Improves(double value, std::optional<double> best) const {
    if (!best) return true;
    const bool larger = mode_ == "max" || (mode_ == "auto" && LargerIsBetter(metric_));
    return larger ? value - min_delta_ > *best : value + min_delta_ < *best;
  }

 private:
  const std::string metric_, mode_;
  const double min_delta_;
};

class EarlyStoppingHooks : public CallbackHooks {
 public:
  explicit EarlyStoppingHooks(const EarlyStopping& options)
      : options_(options), monitor_(options.monitor, options.mode, options.min_delta) {}

  Status OnTrainBegin(FitControl&) override {
    waited_ = 0;
    best_.reset();
    values_ = nullptr;
    return ToPublic(monitor_.Check());
  }

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

 private:
  const EarlyStopping options_;
  const Monitor monitor_;
  int64_t waited_ = 0;
  std::optional<double> best_;
  std::shared_ptr<const FitValues> values_;  // of the best epoch
};

// Returns a number in a format such as ":02d" or ":.3f", the part of {NAME:FORMAT} from the colon.
StatusOr<std::string> Formatted(double value, const std::string& format) {
  if (format.empty()) return StrCat(value);
  const bool whole = format.back() == 'd';
  const std::string digits = format.substr(1, format.size() - 2);
  const bool known =
      format.size() >= 2 && std::string("dfeg").find(format.back()) != std::string::npos;
  if (!known || digits.size() > 5 || digits.find_first_not_of("0123456789.") != std::string::npos) {
    return InvalidArgument("path: the format \"", format.substr(1),
                           "\" is not supported; use one such as 02d, .3f, .2e or g");
  }
  std::array<char, 128> text;
  const std::string print = StrCat("%", digits, whole ? "lld" : format.substr(format.size() - 1));
  const int size = whole ? std::snprintf(text.data(), text.size(), print.c_str(),
                                         static_cast<long long>(std::llround(value)))
                         : std::snprintf(text.data(), text.size(), print.c_str(), value);
  return std::string(text.data(), static_cast<size_t>(std::clamp(size, 0, 127)));
}

// Replaces {epoch} and the names of metrics in the path.
StatusOr<std::string> PathOf(const std::string& path, int64_t epoch, const Metrics& metrics) {
  std::string made;
  for (size_t at = 0; at < path.size();) {
    const size_t open = path.find('{', at);
    const size_t close = open == std::string::npos ? open : path.find('}', open);
    if (close == std::string::npos) return made + path.substr(at);
    made += path.substr(at, open - at);
    const std::string field = path.substr(open + 1, close - open - 1);
    const std::string name = field.substr(0, field.find(':'));
    if (name != "epoch" && !metrics.has(name))
      return InvalidArgument("path: {", field, "}: there is no metric ", name);
    const double value = name == "epoch" ? static_cast<double>(epoch + 1) : metrics[name];
    ASSIGN_OR_RETURN(const std::string text, Formatted(value, field.substr(name.size())));
    made += text;
    at = close + 1;
  }
  return made;
}

class CheckpointHooks : public CallbackHooks {
 public:
  explicit CheckpointHooks(const ModelCheckpoint& options)
      : options_(options), monitor_(options.monitor, options.mode, 0) {}

  Status OnTrainBegin(FitControl&) override {
    best_ = options_.initial_value_threshold;
    return ToPublic(monitor_.Check());
  }

  Status OnEpochEnd(FitControl& run, int64_t epoch, const Metrics& metrics) override {
    if (options_.save_best_only) {
      const StatusOr<std::optional<double>> value = monitor_.ValueIn(run, metrics);
      if (!value.ok()) return ToPublic(value.status());
      if (!*value || !monitor_.Improves(**value, best_)) return {};
      best_ = **value;
    }
    const StatusOr<std::string> path = PathOf(options_.path, epoch, metrics);
    return path.ok() ? run.Save(*path) : ToPublic(path.status());
  }

 private:
  const ModelCheckpoint options_;
  const Monitor monitor_;
  std::optional<double> best_;
};

class CsvHooks : public CallbackHooks {
 public:
  explicit CsvHooks(const CSVLogger& options) : options_(options) {}

  Status OnTrainBegin(FitControl&) override {
    names_.clear();
    std::ifstream before(options_.file);
    header_ = !options_.append || before.peek() == std::ifstream::traits_type::eof();
    file_ = std::ofstream(options_.file, options_.append ? std::ios::app : std::ios::trunc);
    return Written();
  }

  Status OnEpochEnd(FitControl& run, int64_t epoch, const Metrics& metrics) override {
    if (names_.empty()) {
      for (const auto& [name, value] : metrics.values()) {
        names_.push_back(name);
        // The first epoch may end without a validation.
        if (run.validates() && !metrics.has("val_loss")) names_.push_back(StrCat("val_", name));
      }
      std::ranges::sort(names_);
      if (header_) file_ << "epoch" << Columns(names_) << "\n";
    }
    std::vector<std::string> values;
    // A metric of the validation is missing in epochs without one.
    for (const std::string& name : names_)
      values.push_back(metrics.has(name) ? Digits17(metrics[name]) : "NA");
    file_ << epoch << Columns(values) << "\n";
    file_.flush();
    return Written();
  }

  Status OnTrainEnd(FitControl&) override {
    file_.close();
    return Written();
  }

 private:
  static std::string Digits17(double value) {
    std::array<char, 32> text;
    const int size = std::snprintf(text.data(), text.size(), "%.17g", value);
    return {text.data(), static_cast<size_t>(std::clamp(size, 0, 31))};
  }
  std::string Columns(const std::vector<std::string>& values) const {
    std::string columns;
    for (const std::string& value : values)
      columns += StrCat(std::string(1, options_.separator), value);
    return columns;
  }
  Status Written() const {
    if (file_.good()) return {};
    return ToPublic(Unavailable("CSVLogger: ", options_.file, " cannot be written"));
  }

  const CSVLogger options_;
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

  Status OnEpochEnd(FitControl&, int64_t epoch, const Metrics& metrics) override {
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
    writers_.clear();  // writes what is left
    return {};
  }

 private:
  const TensorBoard options_;
  std::map<std::string, std::unique_ptr<train::SummaryWriter>> writers_;  // by folder
};

class NanHooks : public CallbackHooks {
 public:
  Status OnEpochEnd(FitControl&, int64_t epoch, const Metrics& metrics) override {
    if (std::isfinite(metrics["loss"])) return {};
    return ToPublic(InvalidArgument("the loss of epoch ", epoch, " is ", metrics["loss"],
                                    "; a smaller learning rate or clipped gradients may help"));
  }
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
  bool WantsBatches() const override { return functions_.on_batch_end != nullptr; }
  Status OnBatchEnd(FitControl& run, int64_t batch, const Metrics& metrics) override {
    return functions_.on_batch_end(run, batch, metrics);
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
