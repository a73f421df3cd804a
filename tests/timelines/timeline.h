// Parses the text form of a timeline. Each step is a line of words separated by spaces. Double
// quotes keep spaces inside a word, and '#' starts a comment. Lines indented with at least one
// space belong to the YAML block of the step above. After every step, the operator's loop runs
// until it is idle.
//
//   apply BLOCK                    creates or replaces the TFJob; its name is always "job" and its
//                                  namespace "ns"; replicas without a template get a minimal one
//   patch BLOCK                    merge-patches the TFJob
//   create pod|service NAME BLOCK  creates a foreign object; the block is merged into a minimal one
//   delete job | delete network_policy | delete pod NAME | delete service NAME
//   pod NAME running | succeeded | failed exit=N [reason=R] | evicted [exit=N] [phase=P] | done |
//            restarted N | waiting REASON | gone
//                                  reports as the kubelet. evicted: the kubelet has stopped the
//                                  tensorflow container, which exited with N (default: 137) unless
//                                  it had exited before; the phase is now P (default: Failed);
//                                  done: the tensorflow container exited with 0, but a sidecar
//                                  still runs; restarted N: the tensorflow container has restarted
//                                  N times; gone: deletes the pod at once
//   pods running                   reports that every pending pod runs
//   node NAME lost | ready
//   pod_group SCHEDULER PHASE      writes the phase of the job's pod group as its scheduler does;
//                                  SCHEDULER is any gang scheduler, such as volcano, but not none
//   patch_pod_group SCHEDULER BLOCK  merge-patches the pod group as another client
//   patch_network_policy BLOCK     merge-patches the job's NetworkPolicy as another client
//   native VERSION|none            sets the server's version of Kubernetes' own gang scheduling;
//                                  default: scheduling.k8s.io/v1beta1
//   keys [NAME | NAME=SECRET] …    the operator's keys from now on; default: none. The secret of a
//                                  key without SECRET is made from its name
//   advance DURATION               moves the clock; the loop's timers fire in the meantime
//   step_clock [-]DURATION         sets the wall clock forward or back; no time passes
//   restart operator               restarts the operator, without its in-memory state
//   operator [gang=NAME] [policies=WORD]
//                                  restarts the operator with --gang-scheduler-name=NAME or
//                                  --job-network-policies=WORD (default: as before)
//   fault VERB KIND NAME CODE [executed] [times=N]
//                                  makes the next such call, or the next N, fail; NAME may be *;
//                                  executed: the server does the work, but the answer is lost
//   race VERB KIND NAME BLOCK      merge-patches the TFJob as a user just before the next such call
//   mark                           `expect calls` and `expect no calls` consider later calls only
//
//   expect conditions TYPE[=False] …      all conditions, in order
//   expect condition TYPE REASON [TEXT]   the condition's reason, and a part of its message
//   expect pods [NAME=PHASE[*]] …         all pods of the job; * marks a terminating pod
//   expect services [NAME] …              all services that have a controller
//   expect counts TYPE active=N succeeded=N failed=N restarts=N completed=LIST
//                                         checks only the counts that are given, at least one
//   expect label NAME KEY=VALUE           a label of a pod
//   expect event REASON TEXT N            N events have the reason and contain the text
//   expect calls CALL < CALL …            calls since the mark, as "VERB KIND NAME", in this order;
//                                         others may come between them
//   expect no calls VERB …                no such calls since the mark; `writes` stands for all but
//                                         get, list and watch
//   expect time startTime|completionTime TIME|none
//   expect status FIELD VALUE|none        a member of the status, as one word of JSON
//   expect key POD NAME|none              the pod has, before TFJOB_UID, the job's key derived from
//                                         the operator's current key NAME, and the id of that key
//   expect json pod|service NAME POINTER VALUE|none
//   expect pod_group SCHEDULER none       there is no pod group
//   expect pod_group SCHEDULER POINTER VALUE|none
//   expect network_policy none | POINTER VALUE|none
//                                  the same for the job's NetworkPolicy
//   expect tf_config NAME BLOCK
//   expect job gone
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::timelines {

struct Step {
  int line = 0;
  std::vector<std::string> words;
  std::shared_ptr<const Json> block;  // an empty object if the step has no block
};

StatusOr<std::vector<Step>> ParseTimeline(std::string_view text);

}  // namespace tfjob::timelines
