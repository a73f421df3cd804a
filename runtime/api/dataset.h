// Defines datasets, which provide the examples for training and evaluation.
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

// Examples: inputs, labels and, optionally, sample weights. Immutable and cheap to copy. A program
// does not shuffle, shard or batch a Dataset: Fit shuffles the examples, distributes them among the
// tasks and groups them into batches. Do not write to the arrays of a Dataset while the Dataset is
// in use.
//
// Fit and Evaluate read the files, check the arrays and return any errors. Error messages call the
// data of Fit `data.train`, and the data of an evaluation `data.eval`. Each call reads the files
// again.
class Dataset {
 public:
  Dataset();  // no examples
  // Moving a Dataset copies it, so a moved-from Dataset can still be used.
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = default;

  // The operators below return new datasets. When an example of a new dataset is read, it is
  // computed from examples of this dataset. Operators apply in order: data.Skip(10).Take(5)
  // contains examples 10 to 14. The examples of a new dataset contain only the inputs and outputs
  // of the model that the dataset is used with.

  // Leaves out the first `count` examples; the dataset must have more than `count` examples.
  Dataset Skip(int64_t count) const;
  // Keeps the first `count` examples, or all examples if there are fewer. `count` is at least 1.
  Dataset Take(int64_t count) const;
  // Repeats the examples: an epoch contains each of them `count` times. `count` is at least 1.
  Dataset Repeat(int64_t count) const;
  // Returns a dataset of these examples, followed by the examples of `next`. The values in both
  // datasets must have the same shapes.
  Dataset Concatenate(const Dataset& next) const;
  // Keeps the values in memory. Files are then read and functions called only once, when Fit or
  // Evaluate starts, instead of in every epoch. Fit returns kInvalidArgument if all caches together
  // need more than three quarters of the memory that the process may use. If a dataset combines two
  // parts of a cached dataset `c`, such as c.Take(n) and c.Skip(n), the values are read and kept
  // twice.
  Dataset Cache() const;
  // Keeps the values in a file. Files are read and functions called only once: when Fit or Evaluate
  // starts and finds no such file. Later calls, even in other processes, read the file. If the file
  // contains other examples, or was written with another `version` or by another version of this
  // library, it is replaced. If functions of the program compute the examples (Map, From,
  // Generator), the library cannot detect changes to these functions: set `version`, and change it
  // whenever you change the functions. Without a `version`, Fit returns kInvalidArgument for such
  // examples. Changes to an image or text file that do not change its size are not detected,
  // either. If the file cannot be written, the examples are read as if there were no cache. Fit
  // returns kInvalidArgument if `path` is a file of another kind.
  Dataset CacheFile(const std::string& path, const std::string& version = "") const;

  // Replaces each example with the function's result. The types and shapes of the values may
  // change, but must be the same for all examples. Several threads call the function at the same
  // time: once whenever a batch needs an example, and one more time with example 0. The result must
  // depend only on the example, because a resumed training run must see the same values. To change
  // images at random while a model trains, use layers such as RandomFlip, in the model or in
  // FitOptions::augment.
  Dataset Map(std::function<Result<data::Example>(const data::Example&)> function) const;
  // Keeps the examples for which the function returns true; there must be at least one. When Fit or
  // Evaluate starts, it reads all examples once; several threads then call the function at the same
  // time.
  Dataset Filter(std::function<Result<bool>(const data::Example&)> function) const;

 private:
  friend struct Access;
  explicit Dataset(std::shared_ptr<const DatasetData> data) : data_(std::move(data)) {}

  std::shared_ptr<const DatasetData> data_;
};

namespace data {

// Arrays in memory. The dataset shares them with the program. The first axis of each array is the
// example axis. The maps contain the arrays by the names of the model's input and output layers. If
// a model has only one input or output, the array needs no name: use `x`, `y` and `sample_weight`.
//
// The labels of `sparse_categorical_crossentropy` and `categorical_generalized_cross_entropy` are
// class numbers, of any type. There is one sample weight per example or, if the loss has several
// positions per example, one per position.
struct Arrays {
  Tensor x = {}, y = {}, sample_weight = {};
  std::map<std::string, Tensor> inputs = {}, targets = {}, sample_weights = {};
  double scale = 1;  // factor for the float32 inputs of the model

  operator Dataset() const;
};

// Two IDX files, the format of MNIST, plain or gzipped.
struct Idx {
  std::string images = {}, labels = {};
  double scale = 1;

  operator Dataset() const;
};

// NumPy arrays, in one .npz file or in separate .npy files. The maps' keys are names of inputs or
// outputs ("" for a model's only one); the values are names of arrays in the .npz file, or paths of
// .npy files. An input or output without an entry uses the array with its own name. If it is the
// model's only input or output, it uses `x` or `y`, respectively.
struct Npz {
  std::string file = {};
  std::map<std::string, std::string> inputs = {}, targets = {}, sample_weights = {};
  double scale = 1;

  operator Dataset() const;
};

// Describes how text is converted to token ids. docs/training-file.md describes the tokenizers.
struct Tokenize {
  // "wordpiece" (BERT's), "bpe" (GPT-2's), "byte", or "tokenizer_json" (Hugging Face's files)
  std::string name = {};
  std::string vocabulary = {};  // a file: vocab.txt for wordpiece, vocab.json for bpe
  std::string merges = {};      // a file: merges.txt for bpe
  std::string file = {};        // tokenizer.json, for tokenizer_json
  int64_t max_length = 0;       // number of ids; shorter text is padded
  bool truncate = false;        // truncate longer text, instead of returning an error
  // Unset: false for bpe, otherwise true. The special tokens are "[CLS]" and "[SEP]" for wordpiece,
  // a token for the end of the text for bpe and byte, and for tokenizer_json those that the file
  // adds.
  std::optional<bool> add_special_tokens = {};
  std::optional<bool> lower_case = {};     // wordpiece; unset: true
  std::optional<bool> strip_accents = {};  // wordpiece; unset: as lower_case
};

// Describes how a feature of a tf.train.Example or SequenceExample is converted to a value. In
// terms of tf.io, `shape` alone describes a FixedLenFeature, `max_length` alone a VarLenFeature
// (longer lists are an error, shorter ones are padded), and the two combined a
// FixedLenSequenceFeature with steps of this shape. Without either, the feature is a single value.
struct Feature {
  std::string dtype = "float32";  // "float32", "int64" or "string"
  std::vector<int64_t> shape = {};
  int64_t max_length = 0;  // 0: the length does not vary
  bool sequence = false;  // with max_length, but no shape: a sequence whose steps are single values
  // The value that pads short lists (0 if unset), and that replaces a missing feature for which
  // only `shape` is set. Cannot be set for strings.
  std::optional<double> default_value = {};
  std::string decode_raw = {};  // the type of the elements that the string's bytes encode
  // Decodes the string, a JPEG or PNG image, to float32 from 0 to 255. `shape` is then [height,
  // width, channels], with 1, 3 or 4 channels.
  bool decode_image = false;
  std::string resize = {};            // of images: "bilinear" (the default) or "nearest"
  bool crop_to_aspect_ratio = false;  // of images: as in Images
  // Converts the string into token ids: int64 [tokenize->max_length]. Leave the feature's own
  // `shape` and `max_length` unset.
  std::optional<Tokenize> tokenize = {};
  // Convert strings to the int64 ids of terms. The terms are either the elements of `terms` or the
  // lines of the file `vocabulary`. Ids below num_oov_indices (1 if unset) represent unknown terms,
  // as in Keras' StringLookup.
  std::vector<std::string> terms = {};
  std::string vocabulary = {};
  std::optional<int64_t> num_oov_indices = {};
  // Csv only: the columns, one per element of the value. Empty: the column with the feature's name.
  std::vector<std::string> columns = {};
};

// A CSV file, plain or gzipped. Without `features`, all values are numbers, and all columns except
// the label column form the input.
struct Csv {
  std::string file = {};
  bool header = true;             // the first row contains names
  std::string label_column = {};  // a name or an index (negative: from the end); "": the last one
  char delimiter = ',';
  double scale = 1;
  // If set, only the columns of these features are read, by their names in the first row; leave
  // `label_column` unset. The maps assign features to the inputs, outputs and sample weights, as in
  // Npz.
  std::map<std::string, Feature> features = {};
  std::map<std::string, std::string> inputs = {}, targets = {}, sample_weights = {};

  operator Dataset() const;
};

// TFRecord files of tf.train.Example, plain or compressed. The files may be larger than memory.
struct TfRecord {
  std::vector<std::string> files = {};  // paths, or patterns as in a shell
  std::map<std::string, Feature> features = {};
  // Assign features to the inputs, outputs and sample weights, as in Npz.
  std::map<std::string, std::string> inputs = {}, targets = {}, sample_weights = {};
  bool skip_damaged = false;   // leave out damaged records, instead of returning an error
  std::string cache_dir = {};  // for temporary files; "": TMPDIR or /tmp
  double scale = 1;

  operator Dataset() const;
};

// Files of JSON objects, one per line, plain or compressed. The files may be larger than memory.
// The features are the members of the objects. The fields of this struct have the same meanings as
// in TfRecord.
struct JsonLines {
  std::vector<std::string> files = {};
  std::map<std::string, Feature> features = {};
  std::map<std::string, std::string> inputs = {}, targets = {}, sample_weights = {};
  bool skip_damaged = false;
  std::string cache_dir = {};
  double scale = 1;

  operator Dataset() const;
};

// A folder of JPEG and PNG images, with a subfolder per class, as
// keras.utils.image_dataset_from_directory reads it. The images may be larger than memory. The
// pixels become float32 values from 0 to 255, times `scale`.
struct Images {
  std::string folder = {};                // contains the subfolders
  std::vector<std::string> classes = {};  // the names of the subfolders; empty: all, sorted
  int64_t height = 256, width = 256;      // the size to which images are resized
  int64_t channels = 3;                   // 1: grey; 3: RGB; 4: RGB with an alpha channel
  std::string resize = "bilinear";        // or "nearest"
  // Before the image is resized, crop it to the central part that has the new aspect ratio.
  bool crop_to_aspect_ratio = false;
  bool skip_damaged = false;  // leave out damaged files, instead of returning an error
  double scale = 1;

  operator Dataset() const;
};

// Text files for language models, plain or compressed. The files may be larger than memory. Each
// line is an example: the tokens are the input, and the label of each token is the next token.
// Padding has weight 0. Blank lines are ignored.
struct Text {
  std::vector<std::string> files = {};  // paths, or patterns as in a shell
  Tokenize tokenize = {};
  // If set, each token is its own label, as masked language models require
  // (FitOptions::mask_tokens). Otherwise, the label is the next token.
  bool same_token = false;
  bool skip_damaged = false;
  std::string cache_dir = {};

  operator Dataset() const;
};

// A folder of text files, with a subfolder per class, as keras.utils.text_dataset_from_directory
// reads it. The files may be larger than memory.
struct Texts {
  std::string folder = {};                // contains the subfolders
  std::vector<std::string> classes = {};  // the names of the subfolders; empty: all, sorted
  Tokenize tokenize = {};
  bool skip_damaged = false;  // leave out files that are not UTF-8, instead of returning an error

  operator Dataset() const;
};

// One example: the values for the inputs and outputs of the model, as in Arrays, but without the
// example axis.
struct Example {
  Tensor x = {}, y = {}, sample_weight = {};
  std::map<std::string, Tensor> inputs = {}, targets = {}, sample_weights = {};
};

// Provides examples that the program computes. Batches read the examples that they need, one at a
// time and in any order.
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
  // Returns example `i`, from 0 to size() - 1. Several threads call this function at the same time.
  // Every call for the same example must return the same values, in every task of a job. The types
  // and shapes must be the same for all examples.
  virtual Result<Example> Row(int64_t i) const = 0;
};
// Returns a dataset of the examples of `source`, which must not be null.
Dataset From(std::shared_ptr<const Source> source);

// Examples that a program can provide only in order. Each epoch starts a new pass. After a restart
// in the middle of an epoch, the library starts a pass and discards the examples that have already
// been used. Every task of a job reads all examples from its own generator, but uses only its
// share. Fit cannot shuffle these examples. It rejects BackupAndRestore, because two passes may
// yield different examples. After Cache(), there is only one pass, so Fit can shuffle and accepts
// BackupAndRestore.
struct Generator {
  // Returns the next example, or nullopt after the last one. Called by one thread at a time for
  // each pass.
  using Next = std::function<Result<std::optional<Example>>()>;

  // Starts a pass. If the same Generator provides the training and the validation data, there are
  // two passes at a time, and two threads start them.
  std::function<Result<Next>()> start = {};
  // The number of examples in every pass, at most 2^48. If a pass is longer, the excess examples
  // are ignored.
  int64_t size = 0;

  operator Dataset() const;
};

// Determines when a mix of datasets, and therefore an epoch, ends.
enum class Stop {
  kFirst,  // before the first dataset runs out, so no example is repeated
  kAll,    // when all datasets have been read completely; shorter datasets are repeated
};
// Mixes datasets evenly, in proportion to `weights`. There is one weight per dataset; all weights
// must be above 0. The values of all datasets must have the same shapes.
// (tf.data.Dataset.sample_from_datasets draws at random instead.)
Dataset Mix(std::vector<Dataset> datasets, std::vector<double> weights, Stop stop = Stop::kFirst);

// Takes blocks of `block_length` examples from `cycle_length` datasets in turn, as
// tf.data.Dataset.interleave does. When a dataset ends, the next one takes its place. The values of
// all datasets must have the same shapes. The order matters only if the examples are not shuffled,
// or are shuffled within windows.
Dataset Interleave(std::vector<Dataset> datasets, int64_t cycle_length, int64_t block_length = 1);

// Returns a dataset whose examples combine the values of all datasets, as tf.data.Dataset.zip does.
// It has as many examples as the shortest dataset. Each input and output of the model comes from
// one of the datasets. Datasets of files must name the inputs and outputs that they provide
// (`inputs`, `targets`).
Dataset Zip(std::vector<Dataset> datasets);

struct TrainAndTest {
  Dataset train, test;
};
// Returns Fashion-MNIST: 60,000 images of clothes for training and 10,000 for tests, of 28 × 28
// pixels in [0, 1], with labels of ten classes. The folder contains the four files of Debian's
// package dataset-fashion-mnist, or those of MNIST, which have the same names. Returns NotFound,
// with the path, if one of the files is missing.
Result<TrainAndTest> FashionMnist(const std::string& folder);

}  // namespace data
}  // namespace tfjob::api
