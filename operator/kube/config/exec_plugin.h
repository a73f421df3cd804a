// Gets credentials from a program (`exec` in a user entry of a kubeconfig). The program prints an
// ExecCredential with a token or a client certificate, which is used until it expires or a server
// answers 401.
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/config/credentials.h"
#include "operator/kube/config/run_program.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace tfjob::kube {

enum class InteractiveMode { kNever, kIfAvailable, kAlways };

struct ExecConfig {
  std::string where;  // for errors: "FILE: users[0].user.exec"
  // The name of a program to look up in PATH or, if it contains a slash, a path (absolute or
  // relative to the working folder).
  std::string command;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // in addition to the process's own
  std::string api_version;  // client.authentication.k8s.io/v1 or …/v1beta1; the output must match
  InteractiveMode interactive_mode = InteractiveMode::kIfAvailable;
  std::string install_hint;  // for users, if the command does not exist
  // spec.cluster of the program's input, as JSON; "" if provideClusterInfo is off.
  std::string cluster_info;
};

struct ExecOptions {
  Clock* clock = &RealClock();
  Duration timeout{60s};
  // The pause after a failure. During this time, the program is not run again, and callers get the
  // same error.
  Duration pause_after_failure{5s};
  bool terminal = false;  // standard input is a terminal
  std::function<StatusOr<std::string>(const ProgramOptions&)> run = RunProgram;  // tests replace it
  std::vector<std::string> environment;                                          // this process's
};

// Contains the program's output.
struct ExecCredential {
  std::string token;
  std::shared_ptr<const CertificatePair> certificate;
  std::optional<Time> expires;
};

// Parses an ExecCredential. Errors contain JSON paths ("status.token") but never secrets.
StatusOr<ExecCredential> ParseExecCredential(std::string_view text, const std::string& api_version);

// Returns thread-safe credentials. The first caller that needs new credentials runs the program;
// all callers wait until the program has exited.
std::shared_ptr<Credentials> ExecCredentials(ExecConfig config, ExecOptions options);

}  // namespace tfjob::kube
