#include "operator/serve/checks.h"

namespace tfjob::serve {

Handler AllPass(std::vector<Check> checks) {
  return [checks = std::move(checks)](const std::string& query) {
    bool all_pass = true;
    std::string lines;
    for (const Check& check : checks) {
      const Status status = check.run();
      all_pass &= status.ok();
      lines += status.ok() ? StrCat("[+]", check.name, " ok\n")
                           : StrCat("[-]", check.name, " failed: ", Message(status), "\n");
    }
    Response response;
    response.status = all_pass ? 200 : 503;
    const bool verbose = query.starts_with("verbose");
    response.body = all_pass && !verbose ? "ok" : lines;
    return response;
  };
}

}  // namespace tfjob::serve
