// Implements the roles of chief and worker.
#include "runtime/rpc/server.h"
#include "runtime/train/chief.h"
#include "runtime/train/task.h"
#include "runtime/train/trainer.h"

namespace tfjob::train {

namespace {

Status RunChief(TaskContext& context, Trainer& trainer) {
  Chief chief(context, trainer);
  RETURN_IF_ERROR(chief.Prepare());
  while (true) {
    RETURN_IF_ERROR(trainer.Train(&chief));
    ASSIGN_OR_RETURN(const bool saved, chief.SaveLast());
    if (saved) return chief.EndJob();
  }
}

}  // namespace

Status RunTraining(TaskContext& context) {
  ASSIGN_OR_RETURN(auto server, context.Serve({}));
  Trainer trainer(context);
  RETURN_IF_ERROR(trainer.Prepare());
  if (cluster::RoleOf(context.tf_config()) == cluster::Role::kChief)
    return RunChief(context, trainer);
  RETURN_IF_ERROR(trainer.Train(nullptr));
  trainer.Leave();
  return OkStatus();
}

}  // namespace tfjob::train
