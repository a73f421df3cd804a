// Implements ModelCheckpoint.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "runtime/api/access.h"
#include "runtime/api/fit/monitor.h"
#include "runtime/base/file.h"
#include "runtime/model/keras/write.h"

namespace tfjob::api {
namespace {

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

// The numbers that {epoch} and {batch} stand for in a path. They are counted from 1.
struct Numbers {
  int64_t epoch = 1;
  std::optional<int64_t> batch = {};  // unset: {batch} is not allowed

  std::optional<int64_t> Find(const std::string& name) const {
    if (name == "epoch") return epoch;
    return name == "batch" ? batch : std::nullopt;
  }
};

// Replaces {epoch}, {batch} and {NAME}, where NAME is a metric, in the path. If `metrics` is null,
// only checks the formats.
StatusOr<std::string> PathOf(const std::string& path, const Numbers& numbers,
                             const Metrics* metrics) {
  std::string made;
  for (size_t at = 0; at < path.size();) {
    const size_t open = path.find('{', at);
    const size_t close = open == std::string::npos ? open : path.find('}', open);
    if (close == std::string::npos) return made + path.substr(at);
    made += path.substr(at, open - at);
    const std::string field = path.substr(open + 1, close - open - 1);
    const std::string name = field.substr(0, field.find(':'));
    const std::string format = field.substr(name.size());
    const std::optional<int64_t> counted = numbers.Find(name);
    if (counted && format.empty()) {
      made += StrCat(*counted);
    } else {
      if (!counted && metrics != nullptr && !metrics->has(name))
        return InvalidArgument("path: {", field, "}: there is no metric ", name);
      const double number =
          counted ? static_cast<double>(*counted) : (metrics == nullptr ? 0 : (*metrics)[name]);
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
        memory_{.best = options.initial_value_threshold} {}

  Status OnTrainBegin(FitControl& run) override {
    memory_.waited = 0;
    const tfjob::Status begun = monitor_.Begin(run);
    return ToPublic(begun.ok() ? CheckOptions() : begun);
  }

  bool WantsBatches() const override { return options_.save_freq > 0; }
  Status OnEpochBegin(FitControl&, int64_t epoch) override {
    epoch_ = epoch;
    return {};
  }
  Status OnBatchEnd(FitControl& run, int64_t batch, const Metrics& metrics) override {
    if (++memory_.waited % options_.save_freq != 0) return {};
    return Save(run, {.epoch = epoch_ + 1, .batch = batch + 1}, metrics);
  }
  Status OnEpochEnd(FitControl& run, int64_t epoch, const Metrics& metrics) override {
    return options_.save_freq > 0 ? Status() : Save(run, {.epoch = epoch + 1}, metrics);
  }
  std::string SaveState() const override { return memory_.ToText(Owner()); }
  Status RestoreState(const std::string& state) override {
    memory_.Read(state, Owner());
    return {};
  }

 private:
  std::string Owner() const { return StrCat("ModelCheckpoint ", options_.path); }

  // Saves the model, unless an earlier one was better.
  Status Save(FitControl& run, const Numbers& numbers, const Metrics& metrics) {
    if (options_.save_best_only) {
      const StatusOr<std::optional<double>> value = monitor_.ValueIn(run, metrics);
      if (!value.ok()) return ToPublic(value.status());
      if (!*value || !monitor_.Improves(**value, memory_.best)) return {};
      memory_.best = **value;
    }
    const StatusOr<std::string> path = PathOf(options_.path, numbers, &metrics);
    if (!path.ok()) return ToPublic(path.status());
    if (!run.is_chief()) return {};
    const tfjob::Status made = MakeDirectories(ParentFolder(*path));
    return made.ok() ? run.Save(*path) : ToPublic(made);
  }

  // Returns the first error in the options that can be detected before the first epoch has ended.
  tfjob::Status CheckOptions() const {
    if (options_.save_freq < 0) {
      return InvalidArgument("ModelCheckpoint: save_freq: expected at least 0, got ",
                             options_.save_freq);
    }
    if (options_.save_freq > 0 && options_.save_best_only && options_.monitor.starts_with("val_")) {
      return InvalidArgument("ModelCheckpoint: monitor: a validation takes place at the end of an ",
                             "epoch, so save_freq with save_best_only needs a metric of the ",
                             "training, such as loss; got ", options_.monitor);
    }
    const Numbers first = {.batch =
                               options_.save_freq > 0 ? std::optional<int64_t>(1) : std::nullopt};
    RETURN_IF_ERROR(PathOf(options_.path, first, nullptr).status());
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
  CallbackMemory memory_;
  int64_t epoch_ = 0;
};

}  // namespace

ModelCheckpoint::operator Callback() const {
  return std::make_shared<CheckpointHooks>(*this);
}

}  // namespace tfjob::api
