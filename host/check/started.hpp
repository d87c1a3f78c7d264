// A started instance with the table of its kind, which the checks of each kind extend.
#pragma once

#include <memory>

#include "check/subject.hpp"

namespace bulkhead::check {

template <class Table>
class Started {
 public:
  // If the instance does not start, this is reported and ready() returns false. `extension` is the
  // ID of the table.
  Started(Trial *trial, const Subject &subject, Rule rule, const char *extension)
      : trial_(*trial), rule_(rule), loaded_(Loaded::load(trial, subject, &host_, rule)) {
    if (!loaded_) return;
    tested_ = std::make_unique<Tested>(trial, *loaded_, &host_, rule);
    if (tested_->run(subject.config)) table_ = tested_->template ext<Table>(extension);
  }
  bool ready() const noexcept { return table_ != nullptr; }
  const Table &table() const noexcept { return *table_; }
  void *self() { return tested_->self(); }
  Tested &tested() noexcept { return *tested_; }
  TrialHost &host() noexcept { return host_; }

 protected:
  Trial &trial_;
  const Rule rule_;
  TrialHost host_;
  std::unique_ptr<Loaded> loaded_;
  std::unique_ptr<Tested> tested_;
  const Table *table_ = nullptr;
};

}  // namespace bulkhead::check
