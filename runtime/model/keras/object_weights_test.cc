// Tests object-based checkpoints in which a tensor has the name of another variable. Only forged
// checkpoints contain such names.
#include <gtest/gtest.h>
#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include <map>
#include <memory>

#include "runtime/base/file.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/tensor_bundle.pb.h"
#include "runtime/model/keras.h"
#include "runtime/model/keras/weights.h"

namespace tfjob::keras {
namespace {

constexpr int kFloat = 1, kString = 7;  // TensorFlow's DataType values

// Builds a checkpoint with a single data file.
class Checkpoint {
 public:
  void Add(const std::string& name, std::vector<int64_t> dims, const std::vector<float>& values) {
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * 4);
    Add(name, kFloat, dims, bytes, io::MaskCrc(io::Crc32c(bytes)));
  }
  // Adds the object graph. `names` maps the full name of each variable to the name of its tensor.
  void AddGraph(const std::map<std::string, std::string>& names) {
    io::TrackableObjectGraph graph;
    for (const auto& [full_name, key] : names) {
      auto* attribute = graph.add_nodes()->add_attributes();
      attribute->set_full_name(full_name);
      attribute->set_checkpoint_key(key);
    }
    AddString("_CHECKPOINTABLE_OBJECT_GRAPH", graph.SerializeAsString());
  }
  void Write(const std::string& prefix) const {
    ASSERT_TRUE(WriteFileAtomically(io::DataFileName(prefix, 0, 1), data_).ok());
    leveldb::WritableFile* opened = nullptr;
    ASSERT_TRUE(leveldb::Env::Default()->NewWritableFile(io::IndexFileName(prefix), &opened).ok());
    const std::unique_ptr<leveldb::WritableFile> file(opened);
    leveldb::Options options;
    options.compression = leveldb::kNoCompression;
    leveldb::TableBuilder table(options, file.get());
    io::BundleHeaderProto header;
    header.set_num_shards(1);
    table.Add("", header.SerializeAsString());
    for (const auto& [name, entry] : entries_) table.Add(name, entry);
    ASSERT_TRUE(table.Finish().ok());
    ASSERT_TRUE(file->Close().ok());
  }

 private:
  void Add(const std::string& name, int dtype, const std::vector<int64_t>& dims,
           std::string_view bytes, uint32_t masked_crc) {
    io::BundleEntryProto entry;
    entry.set_dtype(dtype);
    for (const int64_t dim : dims) entry.mutable_shape()->add_dim()->set_size(dim);
    entry.set_offset(static_cast<int64_t>(data_.size()));
    entry.set_size(static_cast<int64_t>(bytes.size()));
    entry.set_crc32c(masked_crc);
    entries_[name] = entry.SerializeAsString();
    data_ += bytes;
  }
  // Adds a string tensor: the length of the text as a varint, the checksum of the length, and the
  // text.
  void AddString(const std::string& name, const std::string& text) {
    const auto length = static_cast<uint32_t>(text.size());
    uint32_t crc = io::Crc32c(std::as_bytes(std::span(&length, 1)));
    const uint32_t masked = io::MaskCrc(crc);
    const std::string rest =
        std::string(reinterpret_cast<const char*>(&masked), sizeof masked) + text;
    crc = io::ExtendCrc32c(crc, std::as_bytes(std::span(rest)));
    std::string varint;
    for (uint32_t left = length;; left >>= 7) {
      varint += static_cast<char>(left < 0x80 ? left : left | 0x80);
      if (left < 0x80) break;
    }
    Add(name, kString, {}, varint + rest, io::MaskCrc(crc));
  }

  std::string data_;
  std::map<std::string, std::string> entries_;
};

constexpr char kModel[] = R"({"class_name": "Sequential", "config": {"name": "m", "layers": [
  {"class_name": "InputLayer", "config": {"batch_shape": [null, 3], "name": "x"}},
  {"class_name": "Dense", "config": {"units": 2, "name": "dense"}}]}})";

class ObjectWeightsTest : public testing::Test {
 protected:
  StatusOr<Weights> Open(const Checkpoint& checkpoint) {
    const std::string prefix = StrCat(testing::TempDir(), "/objects");
    checkpoint.Write(prefix);
    return OpenWeights(prefix, model_, variables_);
  }

  const model::Model model_ = *model::ReadKerasJson(kModel, "the model");
  const std::vector<model::VariableSpec> variables_ =
      *model::Variables(model_, model::Features({3}));
};

TEST_F(ObjectWeightsTest, VariablesAreFoundByTheirFullNames) {
  Checkpoint checkpoint;
  checkpoint.Add("a", {3, 2}, {1, 2, 3, 4, 5, 6});
  checkpoint.Add("b", {2}, {7, 8});
  checkpoint.AddGraph({{"dense/kernel", "a"}, {"dense/bias", "b"}});
  const auto weights = Open(checkpoint);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const auto values = ReadValues(*weights, variables_, {});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0]->data<float>()[5], 6);
  EXPECT_EQ((*values)[1]->data<float>()[1], 8);
}

// The kernel's tensor has the name of the bias. The entry of this tensor must not be mistaken for
// the entry of the bias.
TEST_F(ObjectWeightsTest, ATensorCalledLikeAnotherVariableKeepsItsShape) {
  Checkpoint checkpoint;
  checkpoint.Add("dense/bias", {5}, {1, 2, 3, 4, 5});
  checkpoint.Add("t", {3, 2}, {1, 2, 3, 4, 5, 6});
  checkpoint.AddGraph({{"dense/kernel", "dense/bias"}, {"dense/bias", "t"}});
  const auto weights = Open(checkpoint);
  ASSERT_TRUE(weights.ok()) << weights.status();
  for (const char* name : {"dense/kernel", "dense/bias"}) {
    const auto read = weights->read(name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->shape(), weights->entries.at(name).shape) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ReadValues(*weights, variables_, {}).status()));
}

}  // namespace
}  // namespace tfjob::keras
