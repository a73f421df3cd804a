// Implements a Client for tests. It forwards calls, and makes selected calls fail either before
// they reach the server, or after the server has executed them, as if the response were lost.
// Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/client/client.h"
#include "runtime/base/mutex.h"

namespace tfjob::client {

enum class Verb { kGet, kList, kCreate, kUpdate, kUpdateStatus, kPatch, kDelete, kWatch };
std::string_view Name(Verb verb);  // "create"

// Describes a call that arrives at the wrapper. For lists and watches, the key has no name.
struct Call {
  Verb verb;
  Key key;
};

struct Fault {
  std::function<bool(const Call&)> matches;
  int nth = 1;            // which of the matching calls fails first, counting from 1
  int times = 1;          // how many calls in a row fail
  Status error;           // returned to the caller; if OK, the call proceeds after before_call
  bool executed = false;  // the server executes the call, but the response is lost
  // Runs in the caller's thread before each affected call continues, for example to delay the call
  // or to write to the server as another client would.
  std::function<void()> before_call;
};

class FaultyClient : public Client {
 public:
  // `inner` must outlive this object.
  explicit FaultyClient(Client& inner) : inner_(inner) {}

  void Inject(Fault fault);
  // Passes the objects of later creates and patches through `webhook`, as an API server passes them
  // through a mutating webhook.
  void Admit(std::function<void(Kind, Json&)> webhook);
  // Removes all faults.
  void Clear();
  // Returns all calls so far, in order.
  std::vector<Call> Calls();

  StatusOr<Object> Get(const Key& key) override;
  StatusOr<Json> GetJson(const Key& key) override;
  StatusOr<std::vector<Object>> List(Kind kind, const std::string& name_space,
                                     const LabelSelector& selector) override;
  StatusOr<Object> Create(Kind kind, const Json& object) override;
  StatusOr<Object> Update(Kind kind, const Json& object) override;
  StatusOr<Object> UpdateStatus(Kind kind, const Json& object) override;
  StatusOr<Object> Patch(const Key& key, const Json& merge_patch) override;
  Status Delete(const Key& key, const DeleteOptions& options) override;
  StatusOr<std::unique_ptr<Subscription>> Subscribe(Kind kind, const std::string& name_space,
                                                    const LabelSelector& selector,
                                                    WatchSink& sink) override;

 private:
  // Returns the object with the webhook's changes.
  Json Admitted(Kind kind, Json object);
  struct Armed {
    Fault fault;
    int seen = 0;
  };
  struct Outcome {
    Status error;
    bool executed = false;
  };

  Outcome Meet(const Call& call);
  template <typename Operation>
  auto Run(const Call& call, Operation operation) -> decltype(operation());

  Client& inner_;
  Mutex mutex_;
  std::function<void(Kind, Json&)> webhook_ ABSL_GUARDED_BY(mutex_);
  std::vector<Armed> faults_ ABSL_GUARDED_BY(mutex_);
  std::vector<Call> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::client
