#include "operator/manifest/manifest.h"

#include <strings.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/validate.h"
#include "operator/manifest/tfjob_json.h"
#include "operator/objects/metadata.h"
#include "runtime/base/yaml.h"

namespace tfjob::manifest {
namespace {

// Returns whether `longer` (a path, or a line that begins with one: "path: message") is at or below
// `path`.
bool IsWithin(std::string_view longer, std::string_view path) {
  return longer.starts_with(path) &&
         (longer.size() == path.size() ||
          std::string_view(".[:").find(longer[path.size()]) != std::string_view::npos);
}

// Returns whether one of the errors in `lines` (`path: message`) may have caused `issue`, because a
// field that could not be read counts as absent.
bool MayFollow(const api::FieldIssue& issue, std::string_view lines) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    if (IsWithin(line, issue.path) || IsWithin(issue.path, line.substr(0, line.find(": ")))) {
      return true;
    }
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  }
  return false;
}

class ManifestReader {
 public:
  ManifestReader(std::string_view what, bool validate) : what_(what), validate_(validate) {}

  ManifestReport Read(std::string_view text) && {
    const StatusOr<std::vector<Json>> documents = ParseYaml(text, what_);
    if (!documents.ok()) {
      Error(Message(documents.status()));
    } else if (documents->empty()) {
      Error(StrCat(what_, ": the text contains no document"));
    } else {
      for (size_t i = 0; i < documents->size(); ++i) {
        const std::string number = documents->size() > 1 ? StrCat(", document ", i + 1) : "";
        ReadDocument((*documents)[i], StrCat(what_, number));
      }
    }
    return std::move(report_);
  }

 private:
  // Returns ` "name"`, ` "namespace/name"` or an empty string.
  static std::string Quoted(const JsonField& metadata, const std::string& name) {
    const std::string name_space = metadata["namespace"].StringOr("").value_or("");
    if (name.empty()) return "";
    return StrCat(" \"", name_space, name_space.empty() ? "" : "/", name, "\"");
  }

  // Returns whether the object is a job that this operator would not run: another kind of
  // kubeflow.org, or "TFJob" with a capitalisation that API servers do not accept.
  static bool IsOtherJob(const std::string& version, const std::string& kind) {
    if (kind == api::kKind) return false;
    return version.starts_with("kubeflow.org/") || strcasecmp(kind.c_str(), api::kKind) == 0;
  }

  void Error(std::string_view line) { report_.errors.emplace_back(line); }

  void ReadDocument(const Json& document, const std::string& where) {
    const StatusOr<std::string> kind = JsonField(document)["kind"].StringOr("");
    if (!kind.ok() || (*kind != "List" && *kind != "TFJobList")) return ReadObject(document, where);
    const auto items = JsonField(document)["items"].Elements();
    if (!items.ok()) return Error(StrCat(where, ": ", Message(items.status())));
    for (size_t i = 0; i < items->size(); ++i) {
      const Json* item = (*items)[i].value();
      static const Json kNull;
      ReadObject(item == nullptr ? kNull : *item, StrCat(where, ", item ", i + 1));
    }
  }

  void ReadObject(const Json& document, const std::string& place) {
    const JsonField root(document);
    const StatusOr<std::string> kind = root["kind"].String();
    const StatusOr<std::string> version = root["apiVersion"].String();
    if (!document.is_object()) {
      const Status status = root.Mismatch("an object with apiVersion, kind and metadata");
      return Error(StrCat(place, ": ", Message(status)));
    }
    if (!kind.ok()) return Error(StrCat(place, ": ", Message(kind.status())));
    if (!version.ok()) return Error(StrCat(place, ": ", Message(version.status())));
    const std::string name = root["metadata"]["name"].StringOr("").value_or("");
    ManifestObject object;
    object.kind = *kind;
    object.where = StrCat(place, " (", *kind, Quoted(root["metadata"], name), ")");
    object.object = std::make_shared<const Json>(document);
    if (validate_ && IsOtherJob(*version, *kind)) {
      return Error(StrCat(object.where, ": kind: expected \"", api::kKind, "\", got \"", *kind,
                          "\": this operator runs TFJobs only"));
    }
    if (object.kind == api::kKind && !DecodeJob(object)) return;
    if (!CheckUnique(object, place)) return;
    report_.objects.push_back(std::move(object));
  }

  // Decodes and validates a job. Returns false if the job could not be decoded. Validation errors
  // are recorded, but do not change the result.
  bool DecodeJob(ManifestObject& object) {
    PartialTFJob read = ReadTFJob(*object.object);
    const std::string_view unreadable = Message(read.status);
    AddIssues(object.where, read.warnings, report_.warnings);
    AddLines(object.where, unreadable);
    if (validate_) {
      std::vector<api::FieldIssue> issues = api::Validate(read.job);
      std::erase_if(issues, [&](const auto& issue) { return MayFollow(issue, unreadable); });
      AddIssues(object.where, issues, report_.errors);
      if (read.status.ok()) AddIssues(object.where, api::Warnings(read.job), report_.warnings);
    }
    if (!read.status.ok()) return false;
    object.job = std::move(read.job);
    return true;
  }

  // Returns false, and records an error, if the metadata cannot be read or if an earlier object has
  // the same kind, namespace and name.
  bool CheckUnique(const ManifestObject& object, const std::string& place) {
    const JsonField metadata = JsonField(*object.object)["metadata"];
    const StatusOr<objects::ObjectMeta> parsed = objects::ParseObjectMeta(metadata);
    if (!parsed.ok()) {
      Error(StrCat(object.where, ": ", Message(parsed.status())));
      return false;
    }
    if (parsed->name.empty()) return true;
    const std::string key = StrCat(object.kind, "/", parsed->name_space, "/", parsed->name);
    const auto [first, fresh] = places_.emplace(key, place);
    if (fresh) return true;
    Error(StrCat(object.where, ": metadata.name: the same object is already in ", first->second));
    return false;
  }

  void AddIssues(const std::string& where, const std::vector<api::FieldIssue>& issues,
                 std::vector<std::string>& lines) {
    for (const api::FieldIssue& issue : issues) {
      lines.push_back(StrCat(where, ": ", api::ToString(issue)));
    }
  }

  void AddLines(const std::string& where, std::string_view lines) {
    while (!lines.empty()) {
      const size_t end = std::min(lines.find('\n'), lines.size());
      Error(StrCat(where, ": ", lines.substr(0, end)));
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
  }

  const std::string what_;
  const bool validate_;
  ManifestReport report_;
  std::map<std::string, std::string> places_;  // kind/namespace/name → place in the text
};

std::string Count(size_t number, std::string_view noun) {
  return StrCat(number, " ", noun, number == 1 ? "" : "s");
}

}  // namespace

StatusOr<std::vector<ManifestObject>> ParseManifest(std::string_view text, std::string_view what) {
  ManifestReport report = ManifestReader(what, /*validate=*/false).Read(text);
  if (report.ok()) return std::move(report.objects);
  std::string lines;
  for (const std::string& error : report.errors) lines += (lines.empty() ? "" : "\n") + error;
  return InvalidArgument(lines);
}

ManifestReport CheckManifest(std::string_view text, std::string_view what) {
  return ManifestReader(what, /*validate=*/true).Read(text);
}

std::string Print(const ManifestReport& report, std::string_view what) {
  std::string text;
  for (const std::string& error : report.errors) text += StrCat("error: ", error, "\n");
  for (const std::string& warning : report.warnings) text += StrCat("warning: ", warning, "\n");
  if (!report.ok()) return StrCat(text, what, ": ", Count(report.errors.size(), "error"), "\n");
  size_t jobs = 0;
  for (const ManifestObject& object : report.objects) jobs += object.job ? 1 : 0;
  return StrCat(text, what, ": valid, ", Count(jobs, "TFJob"), "\n");
}

}  // namespace tfjob::manifest
