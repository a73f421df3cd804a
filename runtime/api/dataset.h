// Defines the examples with which a model is trained and evaluated.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "status.h"
#include "tensor.h"

namespace tfjob::api {

struct DatasetData;
namespace data {
struct Example;
}  // namespace data

// Examples: inputs, labels and, optionally, sample weights. Immutable and cheap to copy. The
// training shuffles the examples, distributes them among the tasks and groups them into batches; a
// Dataset has neither an order nor a batch size. The arrays of a Dataset must not be written while
// it is in use.
//
// Files are read, and arrays are checked, when the Dataset is used. Fit and Evaluate return the
// errors. In their messages, data.train stands for the data of Fit, and data.eval for the data of
// an evaluation. Each call reads the files again.
class Dataset {
 public:
  Dataset();  // no examples
  // Moves are copies, so that a value can be used after a move.
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = default;

  // The functions below return other examples, which are made from these when the result is used.
  // Operators are applied one after the other: data.Skip(10).Take(5) has the examples 10 to 14. The
  // results have the inputs and outputs of the model that they are used with.

  // Leaves out the first `count` examples. There must be more than that.
  Dataset Skip(int64_t count) const;
  // Keeps the first `count` examples, at least 1, or all if there are fewer.
  Dataset Take(int64_t count) const;
  // An epoch contains each example `count` times, at least once.
  Dataset Repeat(int64_t count) const;
  // Returns these examples and then those of `next`, whose values must have the same shapes.
  Dataset Concatenate(const Dataset& next) const;
  // Keeps the values in memory: reads files and calls functions once, when Fit or Evaluate begins,
  // instead of in every epoch. Fit returns kInvalidArgument if the caches of the process need more
  // than three quarters of the memory that it may use. A dataset that is made of two parts of a
  // cached one, such as c.Take(n) and c.Skip(n), reads and keeps the values twice.
  Dataset Cache() const;
  // Keeps the values in a file: reads files and calls functions once, when the first Fit or
  // Evaluate of the first task that does not find the file begins. Later ones read the file, also
  // in other processes. A file of other examples is replaced; the functions of Map do not count, so
  // remove the file if a function changes. If the file cannot be written, the examples are read as
  // without it. Fit returns kInvalidArgument if there is another kind of file.
  Dataset CacheFile(const std::string& path) const;

  // Replaces every example by the function's result. The types and shapes of the values may change,
  // but must be the same for all examples. The function is called when a batch needs the example,
  // by several threads at the same time, and once more for example 0. Its result must depend on the
  // example only, so that a training that is resumed sees the same ones. To change images at random
  // while a model trains, use layers, such as RandomFlip.
  Dataset Map(std::function<Result<data::Example>(const data::Example&)> function) const;
  // Keeps the examples for which the function returns true, which must be one at least. The
  // function is called for each example when Fit or Evaluate begins, which reads all of them once,
  // by several threads at the same time.
  Dataset Filter(std::function<Result<bool>(const data::Example&)> function) const;

 private:
  friend struct Access;
  explicit Dataset(std::shared_ptr<const DatasetData> data) : data_(std::move(data)) {}

  std::shared_ptr<const DatasetData> data_;
};

namespace data {

// Arrays in memory, which the dataset shares. The first axis of each array counts the examples. An
// input, an output and a sample weight may be given by the name of its layer. If a model has only
// one input or one output, its array needs no name: `x`, `y` and `sample_weight`.
//
// The labels of `sparse_categorical_crossentropy` are classes, in any type. A sample weight belongs
// to an example, or to one place of a loss that has several places per example.
struct Arrays {
  Tensor x = {}, y = {}, sample_weight = {};
  std::map<std::string, Tensor> inputs = {}, targets = {}, sample_weights = {};
  double scale = 1;  // factor for the float32 inputs of the model

  operator Dataset() const;
};

// Two files in MNIST's format, plain or gzipped.
struct Idx {
  std::string images = {}, labels = {};
  double scale = 1;

  operator Dataset() const;
};

// NumPy arrays, in one .npz file or in separate .npy files. The maps assign an array, or the path
// of an .npy file, to the name of an input or output. The only input or output of a model may have
// the name "". An input without an entry has the array of the same name, and the only one has `x`
// (an output: `y`).
struct Npz {
  std::string file = {};
  std::map<std::string, std::string> inputs = {}, targets = {}, sample_weights = {};
  double scale = 1;

  operator Dataset() const;
};

// How a text becomes ids of tokens. docs/training-file.md describes the tokenizers.
struct Tokenize {
  // "wordpiece" (BERT's), "bpe" (GPT-2's), "byte", or "tokenizer_json" (Hugging Face's files)
  std::string name = {};
  std::string vocabulary = {};  // a file: vocab.txt for wordpiece, vocab.json for bpe
  std::string merges = {};      // a file: merges.txt for bpe
  std::string file = {};        // tokenizer.json, for tokenizer_json
  int64_t max_length = 0;       // number of ids; shorter texts are padded
  bool truncate = false;        // cut longer texts, instead of returning an error
  // Unset: true, but false for bpe. "[CLS]" and "[SEP]", or the end of the text; for
  // tokenizer_json, what the file adds.
  std::optional<bool> add_special_tokens = {};
  std::optional<bool> lower_case = {};     // wordpiece; unset: true
  std::optional<bool> strip_accents = {};  // wordpiece; unset: as lower_case
};

// How a feature of a tf.train.Example or SequenceExample becomes a value, in terms of tf.io:
// `shape` is a FixedLenFeature, `max_length` a VarLenFeature (longer lists are an error, shorter
// ones are padded), and both together are a FixedLenSequenceFeature, with steps of this shape.
// Without both, the feature is one value.
struct Feature {
  std::string dtype = "float32";  // "float32", "int64" or "string"
  std::vector<int64_t> shape = {};
  int64_t max_length = 0;  // 0: not of variable length
  bool sequence = false;  // with max_length, but no shape: a sequence whose steps are single values
  // Pads short lists (0 if unset), and replaces a missing feature that has only a `shape`. Not for
  // strings.
  std::optional<double> default_value = {};
  std::string decode_raw = {};  // the type of the elements that a string consists of
  // The string is a JPEG or PNG image. It becomes float32 from 0 to 255, of this shape: [height,
  // width, channels], with 1, 3 or 4 channels.
  bool decode_image = false;
  std::string resize = {};            // of images: "bilinear" (the default) or "nearest"
  bool crop_to_aspect_ratio = false;  // of images: as in Images
  // The string is a text, and becomes int64 [max_length]; `shape` and `max_length` stay unset.
  std::optional<Tokenize> tokenize = {};
  // Strings become int64, the ids of the terms that either `terms` lists or the file `vocabulary`
  // contains, one per line. Ids below num_oov_indices (1 if unset) stand for other terms, as in
  // Keras' StringLookup.
  std::vector<std::string> terms = {};
  std::string vocabulary = {};
  std::optional<int64_t> num_oov_indices = {};
  std::vector<std::string> columns = {};  // Csv: of the elements; empty: the one of the same name
};

// Rows of values, plain or gzipped. Without `features`, all values are numbers, and all columns but
// the label's are the input.
struct Csv {
  std::string file = {};
  bool header = true;             // the first row contains names
  std::string label_column = {};  // a name, or an index, from the end if negative; "": the last one
  char delimiter = ',';
  double scale = 1;
  // If given, these columns are read, by their names in the first row, and `label_column` stays
  // unset. The features for the inputs, outputs and sample weights are given as in Npz.
  std::map<std::string, Feature> features = {};
  std::map<std::string, std::string> inputs = {}, targets = {}, sample_weights = {};

  operator Dataset() const;
};

// TFRecord files of tf.train.Example, plain or compressed, which may be larger than memory.
struct TfRecord {
  std::vector<std::string> files = {};  // paths, or patterns as in a shell
  std::map<std::string, Feature> features = {};
  // The features for the inputs, outputs and sample weights, as in Npz.
  std::map<std::string, std::string> inputs = {}, targets = {}, sample_weights = {};
  bool skip_damaged = false;   // leave out damaged records, instead of returning an error
  std::string cache_dir = {};  // for temporary files; "": TMPDIR or /tmp
  double scale = 1;

  operator Dataset() const;
};

// JSON objects, one per line, plain or compressed, which may be larger than memory. The features
// are the members of the objects. The other members of this struct are those of TfRecord.
struct JsonLines {
  std::vector<std::string> files = {};
  std::map<std::string, Feature> features = {};
  std::map<std::string, std::string> inputs = {}, targets = {}, sample_weights = {};
  bool skip_damaged = false;
  std::string cache_dir = {};
  double scale = 1;

  operator Dataset() const;
};

// A folder of JPEG and PNG images by class, as keras.utils.image_dataset_from_directory reads it.
// The images may be larger than memory. They become float32 from 0 to 255 (times `scale`).
struct Images {
  std::string folder = {};                // contains a folder of images for each class
  std::vector<std::string> classes = {};  // the names of these folders; empty: all, sorted
  int64_t height = 256, width = 256;      // to which the images are resized
  int64_t channels = 3;                   // 1: grey; 3: RGB; 4: RGB with an alpha channel
  std::string resize = "bilinear";        // or "nearest"
  // Resize only the middle part of an image that has the new aspect ratio.
  bool crop_to_aspect_ratio = false;
  bool skip_damaged = false;  // leave out damaged files, instead of returning an error
  double scale = 1;

  operator Dataset() const;
};

// Text files for language models, plain or compressed, which may be larger than memory. Each line
// is an example: its tokens are the input, and the token that follows each is its label. The weight
// of padding is 0. Blank lines are ignored.
struct Text {
  std::vector<std::string> files = {};  // paths, or patterns as in a shell
  Tokenize tokenize = {};
  // The label of each place is the same token instead of the next one, for masked language models
  // (FitOptions::mask_tokens).
  bool same_token = false;
  bool skip_damaged = false;
  std::string cache_dir = {};

  operator Dataset() const;
};

// A folder of text files by class, as keras.utils.text_dataset_from_directory reads it. The texts
// may be larger than memory.
struct Texts {
  std::string folder = {};                // contains a folder of text files for each class
  std::vector<std::string> classes = {};  // the names of these folders; empty: all, sorted
  Tokenize tokenize = {};
  bool skip_damaged = false;  // leave out files that are not UTF-8, instead of returning an error

  operator Dataset() const;
};

// One example: the values for the inputs and outputs of the model, as in Arrays, but without the
// axis of the examples.
struct Example {
  Tensor x = {}, y = {}, sample_weight = {};
  std::map<std::string, Tensor> inputs = {}, targets = {}, sample_weights = {};
};

// Examples that a program provides one by one, in any order. Each is read when a batch needs it.
//
//   struct Squares : data::Source {
//     int64_t size() const override { return 1000; }
//     Result<data::Example> Row(int64_t i) const override { … }
//   };
//   model.Fit(data::From(std::make_shared<Squares>()));
class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t size() const = 0;  // from 1 to 2^48; never changes
  // Returns example `i`, from 0 to size() - 1. Called by several threads at the same time. Every
  // call, in every task of a job, must return the same values for an example, and values of the
  // same types and shapes for all of them.
  virtual Result<Example> Row(int64_t i) const = 0;
};
// Returns the examples of `source`, which must not be null.
Dataset From(std::shared_ptr<const Source> source);

// Examples that a program can provide only in order. Each epoch starts a pass. A restart in the
// middle of an epoch makes the earlier examples of the pass again, and discards them. Every task of
// a job makes all examples, and uses its share. Fit cannot shuffle these examples, and refuses
// BackupAndRestore, because two passes may yield different examples. After Cache(), there is only
// one pass, and both are allowed.
struct Generator {
  // Returns the next example, or nullopt after the last one. Called by one thread at a time for
  // each pass.
  using Next = std::function<Result<std::optional<Example>>()>;

  // Starts a pass. If the same Generator provides the training and the validation data, there are
  // two passes at a time, which are started by two threads.
  std::function<Result<Next>()> start = {};
  // The number of examples in every pass, at most 2^48. A longer pass is cut off there.
  int64_t size = 0;

  operator Dataset() const;
};

// Where a mix, and so the epoch, ends.
enum class Stop {
  kFirst,  // before the first dataset runs out, so no example is repeated
  kAll,    // when all datasets have been read completely; the others begin again meanwhile
};
// Mixes datasets evenly, in proportion to `weights`, which are above 0; one per dataset. The values
// of all must have the same shapes. tf.data.Dataset.sample_from_datasets draws at random instead.
Dataset Mix(std::vector<Dataset> datasets, std::vector<double> weights, Stop stop = Stop::kFirst);

// Returns blocks of `block_length` examples of `cycle_length` datasets in turn, as
// tf.data.Dataset.interleave does. A dataset that ends is replaced by the next one. The values of
// all must have the same shapes. Matters if the examples are not shuffled, or within windows only.
Dataset Interleave(std::vector<Dataset> datasets, int64_t cycle_length, int64_t block_length = 1);

// Returns examples with the values of all datasets, as tf.data.Dataset.zip does; the shortest one
// counts. Each input and output of the model comes from one of the datasets. Files must name the
// inputs and outputs that they provide (`inputs`, `targets`).
Dataset Zip(std::vector<Dataset> datasets);

struct TrainAndTest {
  Dataset train, test;
};
// Returns the 60,000 and 10,000 images of clothes, 28 × 28 pixels in [0, 1], and their ten classes.
// The folder contains the four files of Debian's package dataset-fashion-mnist, or those of MNIST,
// whose names are the same. Returns NotFound, with the path, if one of them is missing.
Result<TrainAndTest> FashionMnist(const std::string& folder);

}  // namespace data
}  // namespace tfjob::api
