#include "runtime/model/layer/argument_visitor.h"

#include "runtime/model/layer/weight_rules.h"

namespace tfjob::model {

void ArgumentVisitor::Rules(const std::string& variable, WeightRules& rules) {
  Regularizer(variable + "_regularizer", rules.regularizer);
  Constraint(variable + "_constraint", rules.constraint);
}

}  // namespace tfjob::model
