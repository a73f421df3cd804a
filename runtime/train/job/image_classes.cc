#include "runtime/train/job/image_classes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/data/folders/class_files.h"

namespace tfjob::train {
namespace {

struct FolderOfFiles {
  std::string key;  // the key of the dataset
  config::SourceConfig* dataset;
};

void AddFolders(const std::string& key, config::SourceConfig& dataset,
                std::vector<FolderOfFiles>& folders) {
  if (dataset.format == config::DataFormat::kImages || dataset.format == config::DataFormat::kTexts)
    folders.push_back({key, &dataset});
  for (size_t i = 0; i < dataset.datasets.size(); ++i)
    AddFolders(StrCat(key, ".datasets[", i, "]"), dataset.datasets[i], folders);
}

StatusOr<std::vector<std::string>> ClassesIn(const FolderOfFiles& folder) {
  if (!folder.dataset->classes.empty()) return folder.dataset->classes;
  return data::ClassesIn(folder.dataset->folder);
}

// Returns InvalidArgument if the classes differ. In the message, `advice` says where to list the
// classes.
Status CheckSameClasses(const FolderOfFiles& first, const FolderOfFiles& other,
                        const std::string& advice) {
  if (first.dataset->folder == other.dataset->folder &&
      first.dataset->classes == other.dataset->classes)
    return OkStatus();
  const StatusOr<std::vector<std::string>> found = ClassesIn(first);
  if (absl::IsNotFound(found.status())) return OkStatus();
  RETURN_IF_ERROR(Annotate(found.status(), first.key));
  const StatusOr<std::vector<std::string>> compared = ClassesIn(other);
  RETURN_IF_ERROR(Annotate(compared.status(), other.key));
  const auto differ = std::ranges::mismatch(*found, *compared);
  if (differ.in1 == found->end() && differ.in2 == compared->end()) return OkStatus();
  const auto text = [](const auto& name, const std::vector<std::string>& names) {
    return name == names.end() ? std::string("missing") : StrCat("the folder ", *name);
  };
  return InvalidArgument(other.key, ": expected the same classes as in ", first.key, ", but class ",
                         differ.in1 - found->begin(), " is ", text(differ.in1, *found), " in ",
                         first.dataset->folder, ", and ", text(differ.in2, *compared), " in ",
                         other.dataset->folder, "; ", advice);
}

// If only `train` lists its classes, uses them for `eval`, too. If neither does, checks that both
// folders contain the same classes.
Status TakeClasses(const FolderOfFiles& train, FolderOfFiles& eval) {
  if (!eval.dataset->classes.empty()) return OkStatus();
  if (!train.dataset->classes.empty()) {
    eval.dataset->classes = train.dataset->classes;
    return OkStatus();
  }
  return CheckSameClasses(
      train, eval,
      StrCat("list the classes in ", train.key, ".classes, which data.eval then uses, too"));
}

}  // namespace

Status AgreeOnClasses(config::TrainingConfig& config, Split split) {
  std::vector<FolderOfFiles> train, eval;
  AddFolders("data.train", config.data.train, train);
  AddFolders("data.eval", config.data.eval, eval);
  std::vector<FolderOfFiles>& folders = split == Split::kTrain ? train : eval;
  if (split == Split::kEval && !train.empty()) {
    const auto lists = std::ranges::find_if(
        train, [](const FolderOfFiles& folder) { return !folder.dataset->classes.empty(); });
    for (FolderOfFiles& folder : eval)
      RETURN_IF_ERROR(TakeClasses(lists == train.end() ? train[0] : *lists, folder));
  }
  for (size_t i = 1; i < folders.size(); ++i) {
    RETURN_IF_ERROR(CheckSameClasses(folders[0], folders[i],
                                     "list the same classes in the key classes of both datasets"));
  }
  return OkStatus();
}

}  // namespace tfjob::train
