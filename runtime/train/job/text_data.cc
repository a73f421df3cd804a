#include "runtime/train/job/text_data.h"

#include <utility>

#include "runtime/data/lines/token_lines.h"
#include "runtime/data/text/byte_pair.h"
#include "runtime/data/text/byte_tokenizer.h"
#include "runtime/data/text/tokenizer_json.h"
#include "runtime/data/text/word_piece.h"
#include "runtime/data/texts/text_source.h"
#include "runtime/model/build.h"
#include "runtime/train/job/batch_columns.h"

namespace tfjob::train {
namespace {

StatusOr<std::shared_ptr<const text::Tokenizer>> ReadFiles(const config::TokenizeConfig& tokenize) {
  if (tokenize.name == "bpe") {
    return text::BytePairTokenizer::Read(
        {.vocabulary = tokenize.vocabulary, .merges = tokenize.merges});
  }
  if (tokenize.name == "tokenizer_json") return text::ReadTokenizerJson(tokenize.file);
  if (tokenize.name == "byte") return std::make_shared<const text::ByteTokenizer>();
  const bool lower_case = tokenize.lower_case.value_or(true);
  return text::WordPieceTokenizer::Read(
      {.vocabulary = tokenize.vocabulary,
       .words = {.lower_case = lower_case,
                 .strip_accents = tokenize.strip_accents.value_or(lower_case)}});
}

// Checks that the vocabulary has the special tokens that enclose text.
Status CheckSpecialTokens(const config::TokenizeConfig& tokenize,
                          const text::SpecialTokens& special) {
  if (tokenize.name == "tokenizer_json") {
    if (special.begin || special.end) return OkStatus();
    return InvalidArgument("expected a post_processor that adds special tokens in ", tokenize.file,
                           ", but there is none; set add_special_tokens: false");
  }
  const bool pieces = tokenize.name == "wordpiece";
  const bool begin = special.begin || !pieces;
  if (begin && special.end) return OkStatus();
  const char* const missing = !begin ? "[CLS]" : pieces ? "[SEP]" : "<|endoftext|>";
  return InvalidArgument("expected the token ", missing, " in ", tokenize.vocabulary,
                         ", but it is missing; add it, or set add_special_tokens: false");
}

// Checks that the special tokens of `options` fit in max_length.
Status CheckLength(const config::TokenizeConfig& tokenize, const text::SequenceOptions& options) {
  if (!options.add_special_tokens) return OkStatus();
  const text::SpecialTokens& special = options.tokenizer->special();
  const int64_t least = (special.begin ? 1 : 0) + (special.end ? 1 : 0);
  if (tokenize.max_length >= least) return OkStatus();
  return InvalidArgument("expected a max_length of at least ", least, ", for the special tokens, ",
                         "got ", tokenize.max_length,
                         "; increase it, or set add_special_tokens: false");
}

}  // namespace

StatusOr<text::SequenceOptions> ReadTokenizer(const config::TokenizeConfig& tokenize,
                                              std::optional<double> padding,
                                              const std::string& at) {
  const auto tokenizer = ReadFiles(tokenize);
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), at);
  const text::SpecialTokens& special = (*tokenizer)->special();
  const bool usual =
      tokenize.name == "tokenizer_json" ? special.begin || special.end : tokenize.name != "bpe";
  const bool add = tokenize.add_special_tokens.value_or(usual);
  const Status complete = add ? CheckSpecialTokens(tokenize, special) : OkStatus();
  if (!complete.ok()) return Annotate(complete, at);
  text::SequenceOptions options{
      .tokenizer = *tokenizer,
      .add_special_tokens = add,
      .truncate = tokenize.truncate,
      .padding = padding ? static_cast<int64_t>(*padding) : special.padding.value_or(0)};
  const Status fits = CheckLength(tokenize, options);
  return fits.ok() ? StatusOr<text::SequenceOptions>(std::move(options)) : Annotate(fits, at);
}

StatusOr<std::shared_ptr<const text::Vocabulary>> ReadVocabulary(
    const config::FeatureConfig& feature, const std::string& at) {
  const int64_t oov = feature.num_oov_indices.value_or(1);
  StatusOr<text::Vocabulary> vocabulary =
      feature.vocabulary.empty()
          ? text::Vocabulary::FromTerms(feature.terms, oov, at + ".vocabulary")
          : text::Vocabulary::Read(feature.vocabulary, oov);
  if (!vocabulary.ok()) return Annotate(vocabulary.status(), at + ".vocabulary");
  return std::make_shared<const text::Vocabulary>(*std::move(vocabulary));
}

StatusOr<std::shared_ptr<const data::Source>> OpenText(const config::TrainingConfig& config,
                                                       Split split, const model::Model& model,
                                                       int threads) {
  const config::SourceConfig& source = SourceOf(config, split);
  const std::string at(KeyOf(split));
  const std::vector<std::string> inputs = model::InputNames(model);
  if (inputs.size() != 1 || model::OutputNames(model).size() != 1) {
    return InvalidArgument(at, ".format: text is for models with one input and one output; use ",
                           "jsonl or tfrecord for others");
  }
  ASSIGN_OR_RETURN(text::SequenceOptions sequence,
                   ReadTokenizer(*source.tokenize, std::nullopt, at + ".tokenize"));
  const bool same = !source.targets.empty() && source.targets.begin()->second == "same_token";
  StatusOr<std::shared_ptr<const data::Source>> opened = data::OpenTokenLines(
      {.files = source.files,
       .sequence = std::move(sequence),
       .length = source.tokenize->max_length,
       .labels = same ? data::TokenLabels::kSameToken : data::TokenLabels::kNextToken,
       .tokens = inputs[0],
       .next = model::LabelsName(model, 0),
       .weights = model::SampleWeightsName(model, 0),
       .skip_damaged = source.on_damaged == config::OnDamaged::kSkip,
       .cache_dir = source.cache_dir,
       .threads = threads});
  return opened.ok() ? opened : Annotate(opened.status(), at);
}

StatusOr<std::shared_ptr<const data::Source>> OpenTexts(const config::TrainingConfig& config,
                                                        Split split, int threads) {
  const config::SourceConfig& source = SourceOf(config, split);
  const std::string at(KeyOf(split));
  ASSIGN_OR_RETURN(text::SequenceOptions sequence,
                   ReadTokenizer(*source.tokenize, std::nullopt, at + ".tokenize"));
  StatusOr<std::shared_ptr<const data::Source>> opened =
      data::OpenTexts({.folder = source.folder,
                       .classes = source.classes,
                       .sequence = std::move(sequence),
                       .length = source.tokenize->max_length,
                       .skip_damaged = source.on_damaged == config::OnDamaged::kSkip,
                       .threads = threads});
  return opened.ok() ? opened : Annotate(opened.status(), at);
}

}  // namespace tfjob::train
