#include "runtime/io/forged_index.h"

#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include "runtime/base/check.h"

namespace tfjob::io {
namespace {

class TextFile : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    text.append(data.data(), data.size());
    return {};
  }
  leveldb::Status Close() override { return {}; }
  leveldb::Status Flush() override { return {}; }
  leveldb::Status Sync() override { return {}; }

  std::string text;
};

}  // namespace

std::string IndexOf(int shards, const std::map<std::string, BundleEntryProto>& entries) {
  BundleHeaderProto header;
  header.set_num_shards(shards);
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  TextFile file;
  leveldb::TableBuilder table(options, &file);
  table.Add("", header.SerializeAsString());
  for (const auto& [key, entry] : entries) {
    if (!key.empty()) table.Add(key, entry.SerializeAsString());
  }
  ENFORCE(table.Finish().ok(), "the table is in memory");
  return file.text;
}

}  // namespace tfjob::io
