// Summarises images and folders of images. Decodes all images, one by one.
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/folders/class_files.h"
#include "runtime/data/images/decode/image_decoder.h"
#include "runtime/data/inspect/file_format.h"
#include "runtime/io/random_access_file.h"

namespace tfjob::data {
namespace {

void AddNumber(std::string_view name, std::string_view kind, int64_t number, FileSummary& summary) {
  FieldSummary* const field = summary.Field(name, kind);
  if (field == nullptr) return;
  ++field->examples;
  field->integers.Add(number);
}

class ImageSummary {
 public:
  // `classes` must be empty for a single image, because a single image has no class.
  ImageSummary(FileSummary summary, std::vector<std::string> classes, const SummaryOptions& options)
      : summary_(std::move(summary)),
        classes_(std::move(classes)),
        images_(classes_.size()),
        options_(options) {}

  // Adds a file of `bytes` bytes. `label` is the index of the file's class; it is ignored if there
  // are no classes.
  Status Add(const std::string& path, uint64_t bytes, size_t label) {
    ASSIGN_OR_RETURN(const std::string_view content, ReadClassFile(path, bytes, buffer_));
    const StatusOr<DecodedImage> image = decoder_.Decode(content);
    if (absl::IsResourceExhausted(image.status())) return Annotate(image.status(), path);
    if (!image.ok()) {
      summary_.AddDamage(Message(Annotate(image.status(), path)));
      return OkStatus();
    }
    const bool show = summary_.examples++ < options_.examples;
    if (!classes_.empty()) ++images_[label];
    if (options_.fields) AddFields(*image, bytes);
    if (options_.fields && show) Show(*image, path, label);
    return OkStatus();
  }

  // Returns the summary of all files that were added.
  FileSummary Finish() {
    // Add the classes last, because there may be more classes than a summary can list fields.
    for (size_t i = 0; options_.fields && i < classes_.size(); ++i) {
      if (FieldSummary* const field = summary_.Field(classes_[i], "class"))
        field->examples += images_[i];
    }
    return std::move(summary_);
  }

 private:
  void AddFields(const DecodedImage& image, uint64_t bytes) {
    if (FieldSummary* const field = summary_.Field("image", image.format)) {
      ++field->examples;
      field->bytes.Add(static_cast<int64_t>(bytes));
    }
    AddNumber("height", "pixels", image.height, summary_);
    AddNumber("width", "pixels", image.width, summary_);
    AddNumber("channels", "number", image.file_channels, summary_);
  }

  void Show(const DecodedImage& image, const std::string& path, size_t label) {
    std::vector<std::string> values = {NamedText(
        "image", StrCat(image.format, ", ", image.width, " × ", image.height, " pixels, ",
                        image.file_channels, image.file_channels == 1 ? " channel" : " channels"))};
    if (!classes_.empty()) values.push_back(NamedText("class", ValueText(classes_[label])));
    summary_.AddExample(path, std::move(values));
  }

  FileSummary summary_;
  const std::vector<std::string> classes_;
  std::vector<int64_t> images_;  // number of intact images per class
  const SummaryOptions& options_;
  ImageDecoder decoder_{DecodeOptions()};
  std::string buffer_;
};

StatusOr<FileSummary> SummariseFolder(const std::string& path, const SummaryOptions& options,
                                      const StopSource& stop) {
  ASSIGN_OR_RETURN(const ClassFiles files, ClassFiles::List({.path = path, .content = "images"}));
  ImageSummary images(FileSummary(path, "folder of images", options.most_damage), files.classes(),
                      options);
  for (int64_t i = 0; i < files.size(); ++i) {
    if (stop.requested()) return Cancelled("stopped while reading ", path);
    RETURN_IF_ERROR(
        images.Add(files.Path(i), files.Bytes(i), static_cast<size_t>(files.ClassOf(i))));
  }
  return images.Finish();
}

}  // namespace

StatusOr<FileSummary> SummariseImages(const std::string& path, const SummaryOptions& options,
                                      const StopSource& stop) {
  if (IsFolder(path)) return SummariseFolder(path, options, stop);
  ASSIGN_OR_RETURN(const io::RandomAccessFile file, io::RandomAccessFile::Open(path));
  ImageSummary images(FileSummary(path, "image", options.most_damage), {}, options);
  RETURN_IF_ERROR(images.Add(path, file.size(), 0));
  return images.Finish();
}

}  // namespace tfjob::data
