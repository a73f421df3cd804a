// Defines the keys of the `data` section.
#include <utility>

#include "runtime/config/bind.h"

namespace tfjob::config {
namespace {

using C = TrainingConfig;

constexpr double kMostPixels = 1 << 16;  // of the height and width of images

Key SourceKey(std::string path, KeyType type, Binding binding, std::vector<std::string> formats,
              const char* doc, const char* unset = "") {
  std::string when = path.substr(0, path.rfind('.')) + ".format";
  return {.path = std::move(path),
          .type = type,
          .binding = binding,
          .doc = doc,
          .when_key = std::move(when),
          .when_values = std::move(formats),
          .unset_doc = unset};
}

auto SourceKeyAdder(std::vector<Key>& keys) {
  return [&keys](std::string path, KeyType type, Binding binding, std::vector<std::string> formats,
                 const char* doc, const char* unset = "") {
    keys.push_back(SourceKey(std::move(path), type, binding, std::move(formats), doc, unset));
  };
}

template <auto source>
void AddArrayKeys(std::vector<Key>& keys, const std::string& at) {
  using S = SourceConfig;
  constexpr auto kData = &C::data;
  const auto add = SourceKeyAdder(keys);
  add(at + "inputs", KeyType::kNames, Bind<kData, source, &S::inputs>(),
      {"npz", "tfrecord", "jsonl", "csv"},
      "The array for each input of the model, as a map from input names to arrays; for a model "
      "with one input, just the array. An array is given by its name in the NPZ file, by the "
      "path of a file that ends in `.npy`, or by the name of a feature. With `csv`, only together "
      "with `features`.",
      "`x`; with several inputs, their names");
  add(at + "targets", KeyType::kNames, Bind<kData, source, &S::targets>(),
      {"npz", "tfrecord", "jsonl", "csv", "text"},
      "The array with the labels of each output, as for `inputs`. With `text`: `next_token`, or "
      "`same_token` for [masked language models](#masked-tokens).",
      "`y`; with several outputs, their names; `text`: `next_token`");
  add(at + "sample_weights", KeyType::kNames, Bind<kData, source, &S::sample_weights>(),
      {"npz", "tfrecord", "jsonl", "csv"},
      "The array with the sample weights of each output, as for `inputs`; or just one array, for "
      "all outputs.",
      "every weight is 1");
}

template <auto source>
void AddRecordKeys(std::vector<Key>& keys, const std::string& at) {
  using S = SourceConfig;
  constexpr auto kData = &C::data;
  const auto add = SourceKeyAdder(keys);
  add(at + "files", KeyType::kStrings, Bind<kData, source, &S::files>(),
      {"tfrecord", "jsonl", "text"},
      "Files, plain or compressed with gzip or zlib: paths, or patterns as in a shell, such as "
      "`[train-*.tfrecord]`.",
      "required");
  add(at + "features", KeyType::kFeatures, Bind<kData, source, &S::features>(),
      {"tfrecord", "jsonl", "csv"},
      "What is read: features of each tf.train.Example, members of each JSON object, or columns of "
      "the CSV file, such as `{x: {dtype: float32, shape: [784]}}`: [TFRecord](#tfrecord), [JSON "
      "lines](#json-lines), [CSV](#csv).",
      "required; `csv`: all columns are numbers");
  add(at + "on_damaged", KeyType::kChoice, Bind<kData, source, &S::on_damaged>(),
      {"tfrecord", "jsonl", "images", "text", "texts"},
      "What to do about damaged records and files. `fail`: end with an error; `skip`: leave them "
      "out, and report how many there are.");
  keys.back().choices = {"fail", "skip"};
  add(at + "cache_dir", KeyType::kString, Bind<kData, source, &S::cache_dir>(),
      {"tfrecord", "jsonl", "text", "csv", "npz", "idx"},
      "Folder for temporary files: the content of compressed files, and the index if there are "
      "more than a million records. With `csv`, `npz` and `idx`, only for files that are too large "
      "for memory.",
      "`TMPDIR`, or `/tmp`");
  add(at + "tokenize", KeyType::kTokenize, Bind<kData, source, &S::tokenize>(), {"text", "texts"},
      "How text becomes tokens, such as `{name: byte, max_length: 256}`: "
      "[tokenizers](#tokenizers).",
      "required");
}

template <auto source>
void AddImageKeys(std::vector<Key>& keys, const std::string& at) {
  using S = SourceConfig;
  constexpr auto kData = &C::data;
  const auto add = SourceKeyAdder(keys);
  add(at + "folder", KeyType::kString, Bind<kData, source, &S::folder>(), {"images", "texts"},
      "Folder that contains a folder of JPEG and PNG images, or of text files, for each class.",
      "required");
  add(at + "classes", KeyType::kStrings, Bind<kData, source, &S::classes>(), {"images", "texts"},
      "The names of the classes' folders. The first class has the label 0.",
      "all folders, sorted by name");
  add(at + "height", KeyType::kInteger, Bind<kData, source, &S::height>(), {"images"},
      "Height in pixels to which the images are resized.");
  keys.back().minimum = 1;
  keys.back().maximum = kMostPixels;
  add(at + "width", KeyType::kInteger, Bind<kData, source, &S::width>(), {"images"},
      "Width in pixels to which the images are resized.");
  keys.back().minimum = 1;
  keys.back().maximum = kMostPixels;
  add(at + "channels", KeyType::kInteger, Bind<kData, source, &S::channels>(), {"images"},
      "1: images are converted to greyscale; 3: RGB; 4: RGB with an alpha channel.");
  keys.back().minimum = 1;
  keys.back().maximum = 4;
  add(at + "resize", KeyType::kChoice, Bind<kData, source, &S::resize>(), {"images"},
      "How images that have another size are resized, as in `tf.image.resize`.");
  keys.back().choices = {"bilinear", "nearest"};
  add(at + "crop_to_aspect_ratio", KeyType::kBool, Bind<kData, source, &S::crop_to_aspect_ratio>(),
      {"images"},
      "Resize only the middle part of an image that has the aspect ratio of width and height, "
      "instead of changing the aspect ratio.");
}

template <auto source>
void AddGeneratedKeys(std::vector<Key>& keys, const std::string& at) {
  using S = SourceConfig;
  constexpr auto kData = &C::data;
  const auto add = SourceKeyAdder(keys);
  add(at + "ranges", KeyType::kRanges, Bind<kData, source, &S::ranges>(), {"synthetic"},
      "Range of the values of each input or output, by its name: `{tokens: [0, 9999]}`. For "
      "integers, both ends are included.",
      "low to high; required for integers");
  add(at + "weights", KeyType::kNumbers, Bind<kData, source, &S::weights>(), {"linear"},
      "One weight per feature.");
  add(at + "bias", KeyType::kNumber, Bind<kData, source, &S::bias>(), {"linear"},
      "Constant added to every y.");
  add(at + "noise", KeyType::kNumber, Bind<kData, source, &S::noise>(), {"linear"},
      "Standard deviation of the noise.");
  add(at + "low", KeyType::kNumber, Bind<kData, source, &S::low>(), {"linear", "synthetic"},
      "Smallest x.");
  add(at + "high", KeyType::kNumber, Bind<kData, source, &S::high>(), {"linear", "synthetic"},
      "Largest x. With one feature, its values are evenly spaced from low to high; with several, "
      "values are drawn uniformly from that range.");
  add(at + "examples", KeyType::kInteger, Bind<kData, source, &S::examples>(),
      {"linear", "synthetic"}, "Number of examples to generate.");
  keys.back().minimum = 1;
  keys.back().maximum = 1 << 30;
}

// Adds the keys of formats that combine several datasets.
template <auto source>
void AddJoinKeys(std::vector<Key>& keys, const std::string& at) {
  using S = SourceConfig;
  constexpr auto kData = &C::data;
  const auto add = SourceKeyAdder(keys);
  add(at + "datasets", KeyType::kDatasets, Bind<kData, source, &S::datasets>(),
      {"concatenate", "mix", "interleave", "zip"},
      "The datasets, each with the keys of this section: [Operators](#operators).", "required");
  keys.push_back({.path = at + "weight",
                  .type = KeyType::kNumber,
                  .binding = Bind<kData, source, &S::weight>(),
                  .doc = "Weight of this dataset among the `datasets` of a `mix`, above 0.",
                  .unset_doc = "1"});
  add(at + "stop", KeyType::kChoice, Bind<kData, source, &S::stop>(), {"mix"},
      "When the mix, and with it the epoch, ends. `first`: before a dataset runs out; `all`: when "
      "every dataset has been read completely. Until then, datasets that have ended start again.");
  keys.back().choices = {"first", "all"};
  add(at + "cycle_length", KeyType::kInteger, Bind<kData, source, &S::cycle_length>(),
      {"interleave"}, "Number of datasets that take turns.");
  keys.back().minimum = 1;
  keys.back().maximum = 1 << 20;
  add(at + "block_length", KeyType::kInteger, Bind<kData, source, &S::block_length>(),
      {"interleave"}, "Number of examples of a dataset in each turn.");
  keys.back().minimum = 1;
  keys.back().maximum = 1 << 30;
}

// Adds the keys of the operators, which apply to examples of every format.
template <auto source>
void AddOperatorKeys(std::vector<Key>& keys, const std::string& at) {
  using S = SourceConfig;
  constexpr auto kData = &C::data;
  constexpr double kMostExamples = static_cast<double>(int64_t{1} << 48);
  keys.push_back({.path = at + "skip",
                  .type = KeyType::kInteger,
                  .binding = Bind<kData, source, &S::skip>(),
                  .doc = "Number of examples to leave out at the beginning.",
                  .minimum = 0,
                  .maximum = kMostExamples});
  keys.push_back({.path = at + "take",
                  .type = KeyType::kInteger,
                  .binding = Bind<kData, source, &S::take>(),
                  .doc = "Number of examples to keep after those that are skipped.",
                  .minimum = 1,
                  .maximum = kMostExamples,
                  .unset_doc = "all"});
  keys.push_back({.path = at + "cache",
                  .type = KeyType::kChoice,
                  .binding = Bind<kData, source, &S::cache>(),
                  .doc = "`memory`: read all examples when the task starts, and keep their values, "
                         "such as decoded images, in memory.",
                  .choices = {"none", "memory"}});
  keys.push_back({.path = at + "cache_file",
                  .type = KeyType::kString,
                  .binding = Bind<kData, source, &S::cache_file>(),
                  .doc = "File in which the values of all examples are kept. The first task that "
                         "does not find it writes it; later ones read it: [Cache "
                         "files](#cache-files).",
                  .unset_doc = "none"});
  keys.push_back({.path = at + "repeat",
                  .type = KeyType::kInteger,
                  .binding = Bind<kData, source, &S::repeat>(),
                  .doc = "Number of times that an epoch contains each example.",
                  .minimum = 1,
                  .maximum = kMostExamples});
}

template <auto source>
void AddSourceKeys(std::vector<Key>& keys, const std::string& at, const char* missing) {
  using S = SourceConfig;
  constexpr auto kData = &C::data;
  keys.push_back(
      {.path = at + "format",
       .type = KeyType::kChoice,
       .binding = Bind<kData, source, &S::format>(),
       .doc =
           "`idx`: files in MNIST's format; `csv`: a table of numbers; `npz`: NumPy "
           "arrays; `tfrecord`: TFRecord files of tf.train.Example; `jsonl`: JSON lines; "
           "`images`: folders of JPEG and PNG images; `text`: lines of text; `texts`: folders of "
           "text files; `linear`: generated "
           "data, y = x·weights + bias + noise; `synthetic`: random numbers of the types and "
           "shapes that the model takes; `concatenate`, `mix`, `interleave`, `zip`: several "
           "`datasets` as one.",
       .choices = {"", "idx", "csv", "npz", "tfrecord", "jsonl", "images", "text", "texts",
                   "linear", "synthetic", "concatenate", "mix", "interleave", "zip"},
       .unset_doc = missing});
  keys.push_back({.path = at + "scale",
                  .type = KeyType::kFraction,
                  .binding = Bind<kData, source, &S::scale>(),
                  .doc = "Factor by which float32 inputs are multiplied: a number, or a fraction "
                         "such as `1/255`."});
  const auto add = SourceKeyAdder(keys);
  add(at + "images", KeyType::kString, Bind<kData, source, &S::images>(), {"idx"},
      "IDX file with the features, plain or gzipped.", "required");
  add(at + "labels", KeyType::kString, Bind<kData, source, &S::labels>(), {"idx"},
      "IDX file with the labels, plain or gzipped.", "required");
  add(at + "file", KeyType::kString, Bind<kData, source, &S::file>(), {"csv", "npz"},
      "CSV file, plain or gzipped; or NPZ file, which may be omitted if every array is an NPY "
      "file.",
      "required");
  add(at + "header", KeyType::kBool, Bind<kData, source, &S::header>(), {"csv"},
      "The first row contains the column names.");
  add(at + "label_column", KeyType::kNameOrIndex, Bind<kData, source, &S::label_column>(), {"csv"},
      "Name or index of the label's column. Indexes start at 0; negative ones count from the end.",
      "the last column");
  add(at + "delimiter", KeyType::kString, Bind<kData, source, &S::delimiter>(), {"csv"},
      "The character that separates columns.");
  AddArrayKeys<source>(keys, at);
  AddRecordKeys<source>(keys, at);
  AddImageKeys<source>(keys, at);
  AddGeneratedKeys<source>(keys, at);
  AddJoinKeys<source>(keys, at);
  AddOperatorKeys<source>(keys, at);
}

// Adds the keys of the `bucket_by_length` and `mask_tokens` sections.
void AddTokenKeys(std::vector<Key>& keys) {
  constexpr double kMostLength = 1 << 28, kMostBatch = 1 << 30, kMostIds = int64_t{1} << 31;
  constexpr auto kBuckets = &DataConfig::bucket_by_length;
  constexpr auto kMask = &DataConfig::mask_tokens;
  const auto add = [&](const char* path, KeyType type, Binding binding, const char* doc,
                       double minimum, double maximum, const char* unset) {
    keys.push_back({.path = path,
                    .type = type,
                    .binding = binding,
                    .doc = doc,
                    .minimum = minimum,
                    .maximum = maximum,
                    .unset_doc = unset});
  };
  add("data.bucket_by_length.boundaries", KeyType::kNumbers,
      Bind<&C::data, kBuckets, &BucketConfig::boundaries>(),
      "Make batches of examples of similar lengths, with these upper limits: [batches by "
      "length](#batches-by-length). Examples above the last limit have batches of their own.",
      1, kMostLength, "batches have examples of any length");
  add("data.bucket_by_length.batch_sizes", KeyType::kNumbers,
      Bind<&C::data, kBuckets, &BucketConfig::batch_sizes>(),
      "Number of examples per batch and task, for each boundary and for longer examples.", 1,
      kMostBatch, "`batch_size`, or `global_batch_size`");
  add("data.bucket_by_length.batch_tokens", KeyType::kInteger,
      Bind<&C::data, kBuckets, &BucketConfig::batch_tokens>(),
      "Instead of `batch_sizes`: number of tokens per batch and task, with padding. A batch has as "
      "many examples as fit, but at least one.",
      1, kMostIds, "not used");
  add("data.bucket_by_length.padding", KeyType::kNumber,
      Bind<&C::data, kBuckets, &BucketConfig::padding>(),
      "The value with which examples are padded. An example ends at its last value that differs "
      "from the padding.",
      -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(),
      "that of the tokenizer or feature, or `0`");
  add("data.mask_tokens.mask_token", KeyType::kInteger,
      Bind<&C::data, kMask, &MaskConfig::mask_token>(),
      "The id that replaces tokens chosen at random, for [masked language models](#masked-tokens).",
      0, kMostIds, "tokens are not masked");
  add("data.mask_tokens.vocabulary_size", KeyType::kInteger,
      Bind<&C::data, kMask, &MaskConfig::vocabulary_size>(), "Number of ids in the vocabulary.", 1,
      kMostIds, "required with `mask_token`");
  add("data.mask_tokens.special_tokens", KeyType::kNumbers,
      Bind<&C::data, kMask, &MaskConfig::special_tokens>(),
      "Ids, such as those of [CLS] and [SEP], that are never masked and never drawn as "
      "replacements. `mask_token` and the padding of the tokenizer or feature are always among "
      "them.",
      0, kMostIds, "`[0]` if the padding is unknown");
  add("data.mask_tokens.rate", KeyType::kNumber, Bind<&C::data, kMask, &MaskConfig::rate>(),
      "Fraction of the other tokens that the model must predict.", 0, 1, "`0.15`");
}

}  // namespace

void AddDataKeys(std::vector<Key>& keys) {
  AddSourceKeys<&DataConfig::train>(keys, "data.train.", "required");
  AddSourceKeys<&DataConfig::eval>(keys, "data.eval.", "no evaluation");
  keys.push_back({.path = "data.labels",
                  .type = KeyType::kChoice,
                  .binding = Bind<&C::data, &DataConfig::labels>(),
                  .doc = "Form in which the loss receives labels: class numbers, one-hot rows or "
                         "values. `auto`: the form that the loss needs.",
                  .choices = {"auto", "class", "one_hot", "value"}});
  keys.push_back(
      {.path = "data.shuffle",
       .type = KeyType::kBool,
       .binding = Bind<&C::data, &DataConfig::shuffle>(),
       .doc =
           "Shuffle the examples before every epoch. The same seed results in the same orders."});
  keys.push_back({.path = "data.shuffle_buffer",
                  .type = KeyType::kInteger,
                  .binding = Bind<&C::data, &DataConfig::shuffle_buffer>(),
                  .doc = "If above 0, shuffle only within windows of this many consecutive "
                         "examples, which suits disks that are slow to read at random places. 0: "
                         "shuffle all examples.",
                  .minimum = 0,
                  .maximum = 1 << 30});
  keys.push_back({.path = "data.shard",
                  .type = KeyType::kChoice,
                  .binding = Bind<&C::data, &DataConfig::shard>(),
                  .doc = "How the training tasks [share the examples]"
                         "(guides/data.md#order-and-shares). `data`: each task takes its share of "
                         "every batch. `file`: each task reads whole files, of which there must be "
                         "at least as many as tasks. `off`: each task reads all examples in every "
                         "epoch. `auto`: `data`, or `off` if the number of tasks is unknown.",
                  .choices = {"auto", "file", "data", "off"}});
  AddTokenKeys(keys);
  keys.push_back({.path = "data.augment",
                  .type = KeyType::kLayers,
                  .binding = Bind<&C::data, &DataConfig::augment>(),
                  .doc = "Layers that change the model's input before it becomes part of a batch, "
                         "such as RandomCrop and RandomFlip: [Augmentation](#augmentation).",
                  .unset_doc = "none"});
  keys.push_back({.path = "data.drop_remainder",
                  .type = KeyType::kBool,
                  .binding = Bind<&C::data, &DataConfig::drop_remainder>(),
                  .doc = "Leave out the last batch of an epoch if it is not full."});
  keys.push_back({.path = "data.prefetch",
                  .type = KeyType::kInteger,
                  .binding = Bind<&C::data, &DataConfig::prefetch>(),
                  .doc = "Number of batches to prepare ahead in the background. 0: each batch is "
                         "prepared only when it is needed.",
                  .minimum = 0,
                  .maximum = 1024});
  keys.push_back({.path = "data.threads",
                  .type = KeyType::kInteger,
                  .binding = Bind<&C::data, &DataConfig::threads>(),
                  .doc = "Number of threads that decode images, tokenize text and run the layers "
                         "of `data.augment`, in addition to the threads that compute. 0: one per "
                         "processor that the CPU affinity and the cgroup's quota allow.",
                  .minimum = 0,
                  .maximum = 4096});
}

}  // namespace tfjob::config
