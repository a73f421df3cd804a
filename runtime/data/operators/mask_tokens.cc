#include "runtime/data/operators/mask_tokens.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/fnv1a.h"
#include "runtime/base/philox.h"

namespace tfjob::data {
namespace {

constexpr double kMasked = 0.8, kMaskedOrRandom = 0.9;

// Chooses the tokens of an example that the model has to predict, and their replacements.
class TokenMasker {
 public:
  explicit TokenMasker(const MaskTokensOptions& options) : options_(options) {}

  void Begin(uint64_t key) { random_ = PhiloxStream(key); }
  // Masks the next token. Returns whether the model has to predict it.
  template <typename T>
  bool Mask(T& token) {
    if (IsSpecial(static_cast<int64_t>(token)) || random_.Uniform() >= options_.rate) return false;
    const double choice = random_.Uniform();
    if (choice < kMasked) token = static_cast<T>(options_.mask_token);
    if (choice >= kMasked && choice < kMaskedOrRandom) token = static_cast<T>(Other());
    return true;
  }

 private:
  bool IsSpecial(int64_t id) const {
    return std::ranges::binary_search(options_.special_tokens, id);
  }
  // Returns a random id that is not special. The loop ends because at least one id is not special.
  int64_t Other() {
    while (true) {
      const int64_t id = random_.Below(static_cast<uint32_t>(options_.vocabulary_size));
      if (!IsSpecial(id)) return id;
    }
  }

  const MaskTokensOptions& options_;
  PhiloxStream random_{0};
};

template <typename T>
void MaskRows(std::span<const int64_t> rows, uint64_t epoch_key, TokenMasker& masker,
              Tensor& tokens, std::span<float> weights) {
  const std::span<T> values = tokens.data<T>();
  const size_t width = values.size() / rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    masker.Begin(PhiloxKey(epoch_key + static_cast<uint64_t>(rows[i]), "example"));
    for (size_t place = i * width; place < (i + 1) * width; ++place) {
      const bool predicted = masker.Mask(values[place]);
      if (!weights.empty() && !predicted) weights[place] = 0;
    }
  }
}

class MaskedReader : public RowReader {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // `tokens` and `weights` are the indices of their columns, or kNone. `reader` fills all columns
  // except, if `adds_weights` is set, the weights.
  MaskedReader(const MaskTokensOptions& options, std::unique_ptr<RowReader> reader, size_t tokens,
               size_t weights, bool adds_weights)
      : options_(options),
        masker_(options),
        reader_(std::move(reader)),
        tokens_(tokens),
        weights_(weights),
        adds_weights_(adds_weights) {
    BeginEpoch(0);
  }

  void BeginEpoch(int64_t epoch) override {
    epoch_key_ =
        PhiloxKey(PhiloxKey(options_.seed, "mask tokens") + static_cast<uint64_t>(epoch), "epoch");
  }

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    if (rows.empty()) return OkStatus();
    RETURN_IF_ERROR(ReadSource(rows, tensors));
    const std::span<float> weights =
        weights_ == kNone ? std::span<float>() : tensors[weights_].value.data<float>();
    if (adds_weights_) std::ranges::fill(weights, 1.0f);
    Tensor& tokens = tensors[tokens_].value;
    if (tokens.dtype() == DType::kInt64)
      MaskRows<int64_t>(rows, epoch_key_, masker_, tokens, weights);
    if (tokens.dtype() == DType::kInt32)
      MaskRows<int32_t>(rows, epoch_key_, masker_, tokens, weights);
    if (tokens.dtype() == DType::kFloat32)
      MaskRows<float>(rows, epoch_key_, masker_, tokens, weights);
    return OkStatus();
  }

 private:
  Status ReadSource(std::span<const int64_t> rows, std::span<NamedTensor> tensors) {
    if (!adds_weights_) return reader_->Read(rows, tensors);
    own_.resize(tensors.size() - 1);
    for (size_t i = 0; i < own_.size(); ++i)
      own_[i].value = tensors[i < weights_ ? i : i + 1].value;  // shares the memory of the tensor
    return reader_->Read(rows, own_);
  }

  const MaskTokensOptions& options_;
  TokenMasker masker_;
  const std::unique_ptr<RowReader> reader_;
  const size_t tokens_, weights_;
  const bool adds_weights_;
  uint64_t epoch_key_ = 0;
  std::vector<NamedTensor> own_;  // the columns that the reader fills
};

size_t IndexOf(const std::vector<Column>& columns, const std::string& array) {
  const auto found = std::ranges::find(columns, array, &Column::array);
  return found == columns.end() ? MaskedReader::kNone
                                : static_cast<size_t>(found - columns.begin());
}

class Masked : public Source {
 public:
  Masked(SourcePtr source, MaskTokensOptions options)
      : source_(std::move(source)), options_(std::move(options)), fields_(source_->fields()) {
    adds_weights_ = source_->Find(options_.weights) == nullptr;
    const Field& tokens = *source_->Find(options_.tokens);
    if (adds_weights_)
      fields_.push_back({options_.weights, tokens.file, DType::kFloat32, tokens.shape});
  }

  int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override { return source_->in_memory(); }
  std::vector<int64_t> file_starts() const override { return source_->file_starts(); }
  int64_t rows_in_memory() const override { return source_->rows_in_memory(); }
  bool random_access() const override { return source_->random_access(); }
  std::string Describe() const override {
    return StrCat(source_->Describe(), "; ", options_.rate * 100, " % of the tokens are masked");
  }
  std::string LeftOut() const override { return source_->LeftOut(); }
  uint64_t fingerprint() const override {
    Fnv1a hash;
    hash.Add("mask tokens").AddWord(source_->fingerprint()).AddWord(options_.seed);
    hash.AddWord(std::bit_cast<uint64_t>(options_.rate));
    hash.AddWord(static_cast<uint64_t>(options_.mask_token));
    hash.AddWord(static_cast<uint64_t>(options_.vocabulary_size));
    for (const int64_t id : options_.special_tokens) hash.AddWord(static_cast<uint64_t>(id));
    return hash.hash();
  }
  const Buckets* buckets() const override { return source_->buckets(); }

  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    const size_t tokens = IndexOf(columns, options_.tokens);
    const size_t weights = IndexOf(columns, options_.weights);
    if (tokens == MaskedReader::kNone) {
      return InvalidArgument("expected ", options_.tokens, ", the tokens that are masked, among ",
                             "the values of a batch");
    }
    const DType dtype = columns[tokens].dtype;
    if (dtype != DType::kInt64 && dtype != DType::kInt32 && dtype != DType::kFloat32) {
      return InvalidArgument("expected tokens of type int64, int32 or float32 in ", options_.tokens,
                             ", got ", Name(dtype));
    }
    if (weights != MaskedReader::kNone && columns[weights].dtype != DType::kFloat32) {
      return InvalidArgument("expected weights of type float32 in ", options_.weights, ", got ",
                             Name(columns[weights].dtype));
    }
    const bool adds = adds_weights_ && weights != MaskedReader::kNone;
    std::vector<Column> own = columns;
    if (adds) own.erase(own.begin() + static_cast<std::ptrdiff_t>(weights));
    ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, source_->Open(own));
    return std::make_unique<MaskedReader>(options_, std::move(reader), tokens, weights, adds);
  }

 private:
  const SourcePtr source_;
  const MaskTokensOptions options_;
  std::vector<Field> fields_;
  bool adds_weights_ = false;
};

}  // namespace

StatusOr<SourcePtr> MaskTokens(SourcePtr source, MaskTokensOptions options) {
  ENFORCE(options.rate > 0 && options.rate <= 1, "the rate is checked where it is read");
  const Field* tokens = source->Find(options.tokens);
  if (tokens == nullptr) return InvalidArgument("the examples have no field ", options.tokens);
  const Field* weights = source->Find(options.weights);
  if (weights != nullptr && weights->shape != tokens->shape) {
    return InvalidArgument("expected one weight per token in ", options.weights, ", of shape ",
                           tokens->shape.ToString(), ", got ", weights->shape.ToString(), " (",
                           weights->file, ")");
  }
  std::vector<int64_t>& special = options.special_tokens;
  special.push_back(options.mask_token);
  std::ranges::sort(special);
  special.erase(std::ranges::unique(special).begin(), special.end());
  const auto ids = std::ranges::count_if(
      special, [&](int64_t id) { return id >= 0 && id < options.vocabulary_size; });
  if (options.vocabulary_size > UINT32_MAX || ids >= options.vocabulary_size) {
    return InvalidArgument("expected a vocabulary with tokens that are not special, of at most ",
                           UINT32_MAX, " ids, got ", options.vocabulary_size, " ids, of which ",
                           ids, " are special");
  }
  return std::make_shared<const Masked>(std::move(source), std::move(options));
}

}  // namespace tfjob::data
