#include "runtime/data/operators/stream.h"

#include <utility>

#include "runtime/base/fnv1a.h"
#include "runtime/data/operators/computed.h"

namespace tfjob::data {
namespace {

class Streamer : public ExampleMaker {
 public:
  Streamer(int64_t size, StartPass start) : size_(size), start_(std::move(start)) {}

  Status Begin(std::span<const int64_t> rows) override {
    rows_ = rows;
    return OkStatus();
  }
  StatusOr<Example> Make(size_t i) override {
    const int64_t row = rows_[i];
    if (next_ == nullptr || row < at_) RETURN_IF_ERROR(Start());
    while (at_ < row) RETURN_IF_ERROR(Next().status());
    return Next();
  }

 private:
  Status Start() {
    next_ = nullptr;  // the previous pass must not continue if start_ fails
    at_ = 0;
    ASSIGN_OR_RETURN(next_, start_());
    return OkStatus();
  }
  // Returns the next example of the pass. After an error, the next call of Make starts a new pass.
  StatusOr<Example> Next() {
    StatusOr<std::optional<Example>> example = next_();
    if (example.ok() && *example) {
      ++at_;
      return **std::move(example);
    }
    next_ = nullptr;
    if (!example.ok()) return example.status();
    return InvalidArgument("expected ", size_, " examples in every pass, but this one ended after ",
                           at_, "; state the number of examples that every pass has");
  }

  const int64_t size_;
  const StartPass start_;
  std::span<const int64_t> rows_;
  NextExample next_;  // yields the examples of the current pass
  int64_t at_ = 0;    // the index of the example that next_ will return
};

}  // namespace

StatusOr<SourcePtr> Stream(const std::string& name, int64_t size, StartPass start) {
  return Compute(
      {.file = name,
       .text = StrCat(name, ", read in order"),
       .size = size,
       .random_access = false,
       .threads = 1,
       .fingerprint = Fnv1a().Add(name).AddWord(static_cast<uint64_t>(size)).hash(),
       .make_maker = [size, start = std::move(start)]() -> StatusOr<std::unique_ptr<ExampleMaker>> {
         return std::make_unique<Streamer>(size, start);
       }});
}

}  // namespace tfjob::data
